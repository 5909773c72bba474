"""Configurations of topics, brokers and clients. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class DescribeConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = array("string", nullable="0+")


@message(api_key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    resources: tuple[DescribeConfigsResource, ...] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@struct
class DescribeConfigsSynonym:
    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


@struct
class DescribeConfigsResourceResult:
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    is_default: bool = boolean("0")
    config_source: int = int8("1+", default=-1)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsSynonym, ...] = array(DescribeConfigsSynonym, "1+")
    config_type: int = int8("3+")
    documentation: str | None = string("3+", nullable="0+")


@struct
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResourceResult, ...] = array(DescribeConfigsResourceResult)


@message(api_key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResult, ...] = array(DescribeConfigsResult)


@struct
class AlterConfigsRequestAlterableConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsRequestAlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterConfigsRequestAlterableConfig, ...] = array(AlterConfigsRequestAlterableConfig)


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    resources: tuple[AlterConfigsRequestAlterConfigsResource, ...] = array(AlterConfigsRequestAlterConfigsResource)
    validate_only: bool = boolean()


@struct
class AlterConfigsResponseAlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResponseAlterConfigsResourceResponse, ...] = array(
        AlterConfigsResponseAlterConfigsResourceResponse
    )


@struct
class IncrementalAlterConfigsRequestAlterableConfig:
    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


@struct
class IncrementalAlterConfigsRequestAlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[IncrementalAlterConfigsRequestAlterableConfig, ...] = array(
        IncrementalAlterConfigsRequestAlterableConfig
    )


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    resources: tuple[IncrementalAlterConfigsRequestAlterConfigsResource, ...] = array(
        IncrementalAlterConfigsRequestAlterConfigsResource
    )
    validate_only: bool = boolean()


@struct
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = int32()
    responses: tuple[IncrementalAlterConfigsResponseAlterConfigsResourceResponse, ...] = array(
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    )


@struct
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: tuple[ComponentData, ...] = array(ComponentData)
    strict: bool = boolean()


@struct
class DescribeClientQuotasResponseEntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class ValueData:
    key: str = string()
    value: float = float64()


@struct
class DescribeClientQuotasResponseEntryData:
    entity: tuple[DescribeClientQuotasResponseEntityData, ...] = array(DescribeClientQuotasResponseEntityData)
    values: tuple[ValueData, ...] = array(ValueData)


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: tuple[DescribeClientQuotasResponseEntryData, ...] | None = array(
        DescribeClientQuotasResponseEntryData, nullable="0+"
    )


@struct
class AlterClientQuotasRequestEntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class OpData:
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@struct
class AlterClientQuotasRequestEntryData:
    entity: tuple[AlterClientQuotasRequestEntityData, ...] = array(AlterClientQuotasRequestEntityData)
    ops: tuple[OpData, ...] = array(OpData)


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: tuple[AlterClientQuotasRequestEntryData, ...] = array(AlterClientQuotasRequestEntryData)
    validate_only: bool = boolean()


@struct
class AlterClientQuotasResponseEntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class AlterClientQuotasResponseEntryData:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: tuple[AlterClientQuotasResponseEntityData, ...] = array(AlterClientQuotasResponseEntityData)


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: int = int32()
    entries: tuple[AlterClientQuotasResponseEntryData, ...] = array(AlterClientQuotasResponseEntryData)
