"""Artifacts: the files that stages exchange, which are parquet tables with fixed columns and safetensors files.

`dualread.schema.columns` declares the columns, `tables` reads and writes parquet, `tensors` safetensors.
"""
