# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The computed part of the distribution's metadata; see pyproject.toml.

The data that the programs train on lies in testdata/ at the top level and is
installed as tfplugin/testdata/. Code finds it next to the package, or, in a
checkout and under Bazel, one directory further up.
"""

import gzip
import io
import os
import pathlib
import re
import tarfile

import setuptools
from setuptools.command import sdist

# The earliest time that a zip archive holds: the same sources give the same
# wheel, byte for byte, whoever builds it.
os.environ.setdefault('SOURCE_DATE_EPOCH', '315532800')

_TIME = int(os.environ['SOURCE_DATE_EPOCH'])
_ROOT = pathlib.Path(__file__).resolve().parent
# The TensorFlow that brings Estimator, and those that lost it. From 2.16 on
# Keras 2, which Estimator needs, is a distribution of its own, and
# `tf.summary` needs a TensorBoard that not every TensorFlow asks for.
_WITH_ESTIMATOR = '>=2.15,<2.16'
_WITHOUT_ESTIMATOR = '>=2.16.2,<2.22'


def _newer(marker: str = '') -> list:
  return [requirement + marker for requirement in (
      f'tensorflow{_WITHOUT_ESTIMATOR}', 'tf-keras>=2.16,<2.22',
      'tensorboard>=2.16')]


# The best for each Python: Estimator's own TensorFlow, where there is a wheel.
_BEST = _newer("; python_version >= '3.12'")
_OLDER_PYTHON = "; python_version < '3.12'"
# What the programs import besides the package's own requirements.
_TRAIN = ['matplotlib>=3.7', 'rich>=13', 'tensorboard>=2.15']
# What draws the page of tfplugin-report; TensorFlow 2.15 brings TensorBoard.
_REPORT = ['plotly>=5.24,<8', 'tensorboard>=2.15']
_TEST = [*_TRAIN, *_REPORT, 'psutil>=5.9', 'pytest>=8', 'pytest-timeout>=2.2',
         'pytest-xdist>=3']
# A program is declared when it exists.
_PROGRAMS = ('launch', 'migrate_checkpoint', 'plan', 'report', 'train',
             'train_tpu', 'watch')


def _version() -> str:
  """Reads the version without importing the package, and so TensorFlow."""
  namespace: dict = {}
  exec((_ROOT / 'tfplugin/version.py').read_text(), namespace)
  return namespace['__version__']


def _console_scripts() -> list:
  return [
      f'tfplugin-{name.replace("_", "-")} = tfplugin.bin.{name}:run'
      for name in _PROGRAMS
      if (_ROOT / f'tfplugin/bin/{name}.py').exists()
  ]


def _long_description() -> str:
  """Returns README.md with links that work on a package index, too."""
  text = (_ROOT / 'README.md').read_text(encoding='utf-8')
  source = re.search(r'^Source = "(.*)"$', (
      _ROOT / 'pyproject.toml').read_text(encoding='utf-8'), re.M).group(1)
  at = f'v{_version()}'
  text = re.sub(r'(!\[[^]]*\]\()(?!\w+://)', rf'\1{source}/raw/{at}/', text)
  return re.sub(r'(?<=\]\()(?!\w+://|#)', f'{source}/blob/{at}/', text)


def _normalised(archive: bytes) -> bytes:
  """Returns a .tar.gz without what depends on its builder.

  Times, users, modes, the order of the files, and the notes of setuptools in
  *.egg-info, which may list files of another day.
  """
  plain = io.BytesIO()
  with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(
      fileobj=plain, mode='w', format=tarfile.USTAR_FORMAT) as new:
    for member in sorted(old.getmembers(), key=lambda member: member.name):
      if '.egg-info' in member.name:
        continue
      kept = tarfile.TarInfo(member.name)
      kept.type, kept.size, kept.mtime = member.type, member.size, _TIME
      kept.mode = 0o755 if member.isdir() else 0o644
      new.addfile(kept, old.extractfile(member))
  packed = io.BytesIO()
  # Without a name, and with a time of 0, in the header.
  with gzip.GzipFile('', 'wb', 9, packed, mtime=0) as stream:
    stream.write(plain.getvalue())
  return packed.getvalue()


class _Sdist(sdist.sdist):
  """Makes a source archive: the same sources give the same bytes."""

  def make_archive(self, *args, **kwargs):
    """See base class."""
    path = pathlib.Path(super().make_archive(*args, **kwargs))
    path.write_bytes(_normalised(path.read_bytes()))
    return str(path)


setuptools.setup(
    cmdclass={'sdist': _Sdist},
    version=_version(),
    long_description=_long_description(),
    long_description_content_type='text/markdown',
    packages=[*setuptools.find_packages(include=['tfplugin', 'tfplugin.*']),
              'tfplugin.testdata'],
    package_dir={'tfplugin.testdata': 'testdata'},
    package_data={
        'tfplugin': ['py.typed'],
        'tfplugin.testdata': ['*.gz', '*.txt', '*.md'],
    },
    # TensorFlow itself comes by an extra: either distribution serves, and
    # installing both into one environment breaks it.
    install_requires=[
        'absl-py>=1.4',
        'numpy>=1.23',
        'tensorflow-estimator>=2.15,<2.16',
    ],
    extras_require={
        'cpu': [f'tensorflow-cpu{_WITH_ESTIMATOR}{_OLDER_PYTHON}', *_BEST],
        'gpu': [f'tensorflow{_WITH_ESTIMATOR}{_OLDER_PYTHON}', *_BEST],
        'newest': _newer(),
        # It is built for the TensorFlow that is installed already.
        'horovod': ['horovod>=0.28.1,<0.29'],
        'report': _REPORT,
        'train': _TRAIN,
        'test': _TEST,
        'dev': [*_TEST, 'import-linter==2.5.2', 'ruff==0.17.5',
                'setuptools==75.8.2', 'uv', 'wheel'],
    },
    entry_points={'console_scripts': _console_scripts()},
)
