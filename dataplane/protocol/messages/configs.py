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
    """Part of DescribeConfigsRequest."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = array("string", nullable="0+")


@message(api_key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    """What DescribeConfigs asks."""

    resources: tuple[DescribeConfigsResource, ...] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@struct
class DescribeConfigsSynonym:
    """Part of DescribeConfigsResponse."""

    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


@struct
class DescribeConfigsResourceResult:
    """Part of DescribeConfigsResponse."""

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
    """Part of DescribeConfigsResponse."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResourceResult, ...] = array(DescribeConfigsResourceResult)


@message(api_key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    """What DescribeConfigs answers."""

    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResult, ...] = array(DescribeConfigsResult)


@struct
class AlterConfigsRequestAlterableConfig:
    """Part of AlterConfigsRequest."""

    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsRequestAlterConfigsResource:
    """Part of AlterConfigsRequest."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterConfigsRequestAlterableConfig, ...] = array(AlterConfigsRequestAlterableConfig)


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """What AlterConfigs asks."""

    resources: tuple[AlterConfigsRequestAlterConfigsResource, ...] = array(AlterConfigsRequestAlterConfigsResource)
    validate_only: bool = boolean()


@struct
class AlterConfigsResponseAlterConfigsResourceResponse:
    """Part of AlterConfigsResponse."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """What AlterConfigs answers."""

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResponseAlterConfigsResourceResponse, ...] = array(
        AlterConfigsResponseAlterConfigsResourceResponse
    )


@struct
class IncrementalAlterConfigsRequestAlterableConfig:
    """Part of IncrementalAlterConfigsRequest."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


@struct
class IncrementalAlterConfigsRequestAlterConfigsResource:
    """Part of IncrementalAlterConfigsRequest."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[IncrementalAlterConfigsRequestAlterableConfig, ...] = array(
        IncrementalAlterConfigsRequestAlterableConfig
    )


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """What IncrementalAlterConfigs asks."""

    resources: tuple[IncrementalAlterConfigsRequestAlterConfigsResource, ...] = array(
        IncrementalAlterConfigsRequestAlterConfigsResource
    )
    validate_only: bool = boolean()


@struct
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    """Part of IncrementalAlterConfigsResponse."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """What IncrementalAlterConfigs answers."""

    throttle_time_ms: int = int32()
    responses: tuple[IncrementalAlterConfigsResponseAlterConfigsResourceResponse, ...] = array(
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    )


@struct
class ComponentData:
    """Part of DescribeClientQuotasRequest."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """What DescribeClientQuotas asks."""

    components: tuple[ComponentData, ...] = array(ComponentData)
    strict: bool = boolean()


@struct
class DescribeClientQuotasResponseEntityData:
    """Part of DescribeClientQuotasResponse."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class ValueData:
    """Part of DescribeClientQuotasResponse."""

    key: str = string()
    value: float = float64()


@struct
class DescribeClientQuotasResponseEntryData:
    """Part of DescribeClientQuotasResponse."""

    entity: tuple[DescribeClientQuotasResponseEntityData, ...] = array(DescribeClientQuotasResponseEntityData)
    values: tuple[ValueData, ...] = array(ValueData)


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """What DescribeClientQuotas answers."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: tuple[DescribeClientQuotasResponseEntryData, ...] | None = array(
        DescribeClientQuotasResponseEntryData, nullable="0+"
    )


@struct
class AlterClientQuotasRequestEntityData:
    """Part of AlterClientQuotasRequest."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class OpData:
    """Part of AlterClientQuotasRequest."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@struct
class AlterClientQuotasRequestEntryData:
    """Part of AlterClientQuotasRequest."""

    entity: tuple[AlterClientQuotasRequestEntityData, ...] = array(AlterClientQuotasRequestEntityData)
    ops: tuple[OpData, ...] = array(OpData)


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """What AlterClientQuotas asks."""

    entries: tuple[AlterClientQuotasRequestEntryData, ...] = array(AlterClientQuotasRequestEntryData)
    validate_only: bool = boolean()


@struct
class AlterClientQuotasResponseEntityData:
    """Part of AlterClientQuotasResponse."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class AlterClientQuotasResponseEntryData:
    """Part of AlterClientQuotasResponse."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: tuple[AlterClientQuotasResponseEntityData, ...] = array(AlterClientQuotasResponseEntityData)


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """What AlterClientQuotas answers."""

    throttle_time_ms: int = int32()
    entries: tuple[AlterClientQuotasResponseEntryData, ...] = array(AlterClientQuotasResponseEntryData)
