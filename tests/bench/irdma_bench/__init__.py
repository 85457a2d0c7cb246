# SPDX-License-Identifier: GPL-2.0
"""irdma_rs and stock irdma side by side: measuring, judging, showing."""
