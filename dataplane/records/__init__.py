"""Record batches as bytes: read, checked and built. No I/O.

header batch             batches of magic 2: the header is checked, records stay bytes until they must be read
compression lz4 varints  bounded codecs; LZ4 frames as Kafka writes them; integers of varying length
scan steps               records checked without objects; long work cut into pieces
legacy down_conversion   formats 0 and 1, read and written for old clients
preparation              what a leader does to records where a topic asks for more
control                  markers that end a transaction
"""
