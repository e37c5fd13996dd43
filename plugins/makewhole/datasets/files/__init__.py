"""Parquet files in folders, on HDFS and on S3: read as one listing has them, and written as whole files."""
