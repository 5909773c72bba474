"""The Kafka protocol, sans-IO: declarations in `messages/`, codecs generated from them by `codec`.

schema messages   how a message is declared; the declarations
codec primitives  generated encoders and decoders; types that need more than `struct`
templates source  messages of which few fields change, without decoding; the text of generated functions
headers frame     what stands before a body; cutting a stream into frames
api errors        every API with its messages; error codes
arrays            tuples, and for very long arrays lists
release           letting go of long messages a piece at a time
error_codes       those that an answer has, of all its rows
"""
