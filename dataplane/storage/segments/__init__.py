"""The segments of a log: batches in a file, sparse indexes, and finding things in them.

segment                  one segment: finds offsets and times
batch_file indexed_file  batches one behind the other; what is remembered of them
index index_files        the sparse indexes, and how far their files are believed
aborted                  which transactions were aborted
saving                   who writes the files of indexes, one after the other
lookup replay            looks for a time or a range; reads a whole log in pieces
retention                which segments are old enough, or too many
descriptors              which segments hold descriptors
"""
