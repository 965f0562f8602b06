"""Artifacts: the files that stages exchange, which are parquet tables with fixed columns and safetensors files.

`schemas` defines every column once, `tables` reads and writes parquet, `tensors` reads and writes safetensors.
"""
