"""Keep files of other people in folders, on HDFS and on S3: listed, read, published under a name that none has."""
