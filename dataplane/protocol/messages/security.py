"""SASL, SCRAM credentials and ACLs. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    binary,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@message(api_key=17, versions="0-1", flexible="none")
class SaslHandshakeRequest:
    mechanism: str = string()


@message(api_key=17, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    error_code: int = int16()
    mechanisms: tuple[str, ...] = array("string")


@message(api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: bytes = binary()


@message(api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+")


@struct
class UserName:
    name: str = string()


@message(api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    users: tuple[UserName, ...] | None = array(UserName, nullable="0+")


@struct
class CredentialInfo:
    mechanism: int = int8()
    iterations: int = int32()


@struct
class DescribeUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: tuple[CredentialInfo, ...] = array(CredentialInfo)


@message(api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[DescribeUserScramCredentialsResult, ...] = array(DescribeUserScramCredentialsResult)


@struct
class ScramCredentialDeletion:
    name: str = string()
    mechanism: int = int8()


@struct
class ScramCredentialUpsertion:
    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary()
    salted_password: bytes = binary()


@message(api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    deletions: tuple[ScramCredentialDeletion, ...] = array(ScramCredentialDeletion)
    upsertions: tuple[ScramCredentialUpsertion, ...] = array(ScramCredentialUpsertion)


@struct
class AlterUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    results: tuple[AlterUserScramCredentialsResult, ...] = array(AlterUserScramCredentialsResult)


@message(api_key=29, versions="0-3", flexible="2+")
class DescribeAclsRequest:
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@struct
class AclDescription:
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DescribeAclsResource:
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    acls: tuple[AclDescription, ...] = array(AclDescription)


@message(api_key=29, versions="0-3", flexible="2+")
class DescribeAclsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: tuple[DescribeAclsResource, ...] = array(DescribeAclsResource)


@struct
class AclCreation:
    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(api_key=30, versions="0-3", flexible="2+")
class CreateAclsRequest:
    creations: tuple[AclCreation, ...] = array(AclCreation)


@struct
class AclCreationResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(api_key=30, versions="0-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: int = int32()
    results: tuple[AclCreationResult, ...] = array(AclCreationResult)


@struct
class DeleteAclsFilter:
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@message(api_key=31, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    filters: tuple[DeleteAclsFilter, ...] = array(DeleteAclsFilter)


@struct
class DeleteAclsMatchingAcl:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DeleteAclsFilterResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = array(DeleteAclsMatchingAcl)


@message(api_key=31, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    throttle_time_ms: int = int32()
    filter_results: tuple[DeleteAclsFilterResult, ...] = array(DeleteAclsFilterResult)
