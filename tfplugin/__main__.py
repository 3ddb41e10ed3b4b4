# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on the installation: python -m tfplugin."""

import sys

from tfplugin.compat import report

if __name__ == '__main__':
  sys.stdout.write('\n'.join(report.lines(with_private_names=True)) + '\n')
