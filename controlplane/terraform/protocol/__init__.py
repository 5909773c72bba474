"""The messages of the protocols, made by protoc of the two files `.proto` beside this one.

messages                      what others import
tfplugin6_pb2 goplugin_pb2    generated: `python -m grpc_tools.protoc -I. --python_out=. controlplane/terraform/protocol/*.proto`
"""
