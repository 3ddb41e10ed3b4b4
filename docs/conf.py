# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of the site that `make docs` builds; docs/building.md says more."""

import os
import pathlib
import sys

_DOCS = pathlib.Path(__file__).absolute().parent
_ROOT = _DOCS.parent
sys.path[:0] = [str(_ROOT), str(_DOCS / '_ext')]
# The kernels of the notebooks find the package of this checkout, too, and say
# nothing of the machine's instructions.
os.environ['PYTHONPATH'] = str(_ROOT)
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'

_version: dict = {}
exec((_ROOT / 'tfplugin/version.py').read_text(), _version)

project = 'tfplugin'
author = copyright = 'The tfplugin Authors'  # noqa: A001 (Sphinx's name)
release = version = _version['__version__']

extensions = [
    'myst_nb',
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.mathjax',
    'house_docstrings',
    'offline_site',
    'run_picture',
]
exclude_patterns = ['_ext/**', '**/.ipynb_checkpoints']

# Pages. A heading has the anchor that code hosts give it.
myst_enable_extensions = ['colon_fence', 'dollarmath', 'fieldlist']
myst_heading_anchors = 4
suppress_warnings = ['myst.header']  # A page of a folder may begin anywhere.

# The notebooks are run from the first cell to the last, each in a new kernel.
nb_execution_mode = 'force'
nb_execution_timeout = 300  # A limit for what hangs; each takes seconds.
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_execution_in_temp = True

# The reference, from the docstrings.
autosummary_generate = False
autodoc_member_order = 'bysource'
autodoc_typehints = 'signature'
autodoc_typehints_format = 'short'
autodoc_class_signature = 'mixed'
autoclass_content = 'both'
python_use_unqualified_type_names = True

# The look. Furo brings its styles and scripts along.
html_theme = 'furo'
html_title = f'tfplugin {version}'
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {'top_of_page_buttons': []}
html_static_path = ['_static']
html_css_files = ['site.css']
html_js_files = ['copy.js']
