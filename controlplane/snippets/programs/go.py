"""Go's clients: franz-go, sarama. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controlplane.snippets.programs.way import AUTHORITY, BEARER, CERTIFICATE, GROUP, KEY, PASSWORD, TOKEN, USER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.snippets.programs.way import Way

_FRANZ_GO = """\
// go get github.com/twmb/franz-go
package main

import (
{imports})

func main() {{
{authority}	client, err := kgo.NewClient(
		kgo.SeedBrokers({brokers}),
{options}	)
	if err != nil {{
		log.Fatal(err)
	}}
	defer client.Close()
	record := &kgo.Record{{Topic: "{topic}", Value: []byte("hello")}}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {{
		log.Fatal(err)
	}}
}}
"""

_FRANZ_GO_CONSUMER = """\
// go get github.com/twmb/franz-go
package main

import (
{imports})

func main() {{
{authority}	client, err := kgo.NewClient(
		kgo.SeedBrokers({brokers}),
{options}		kgo.ConsumerGroup("{group}"),
		kgo.ConsumeTopics("{topic}"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {{
		log.Fatal(err)
	}}
	defer client.Close()
	for {{
		fetches := client.PollFetches(context.Background())
		if err := fetches.Err(); err != nil {{
			log.Fatal(err)
		}}
		fetches.EachRecord(func(record *kgo.Record) {{
			fmt.Println(string(record.Value))
		}})
	}}
}}
"""

_SARAMA = """\
// go get github.com/IBM/sarama{more}
package main

import (
{imports})

func main() {{
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
{settings}	producer, err := sarama.NewSyncProducer([]string{{{brokers}}}, config)
	if err != nil {{
		log.Fatal(err)
	}}
	defer producer.Close()
	message := &sarama.ProducerMessage{{Topic: "{topic}", Value: sarama.StringEncoder("hello")}}
	if _, _, err := producer.SendMessage(message); err != nil {{
		log.Fatal(err)
	}}
}}
{types}"""

_SARAMA_CONSUMER = """\
// go get github.com/IBM/sarama{more}
package main

import (
{imports})

func main() {{
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
{settings}	group, err := sarama.NewConsumerGroup([]string{{{brokers}}}, "{group}", config)
	if err != nil {{
		log.Fatal(err)
	}}
	defer group.Close()
	for {{
		if err := group.Consume(context.Background(), []string{{"{topic}"}}, reader{{}}); err != nil {{
			log.Fatal(err)
		}}
	}}
}}

type reader struct{{}}

func (reader) Setup(sarama.ConsumerGroupSession) error {{
	return nil
}}

func (reader) Cleanup(sarama.ConsumerGroupSession) error {{
	return nil
}}

func (reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {{
	for message := range claim.Messages() {{
		fmt.Println(string(message.Value))
		session.MarkMessage(message, "")
	}}
	return nil
}}
{types}"""

_CONVERSATION = """
// The exchange of SCRAM, which sarama leaves to its users.
type conversation struct {
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := scram.%s.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}
"""

_TOKENS = """
type tokens struct{}

func (tokens) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: "%s"}, nil
}
"""


def franz_go(way: Way) -> str:
    """A producer."""
    return _franz_go(way, _FRANZ_GO)


def franz_go_consumer(way: Way) -> str:
    """A member of a group, which goes on reading."""
    return _franz_go(way, _FRANZ_GO_CONSUMER, "fmt")


def _franz_go(way: Way, program: str, *more: str) -> str:
    """`more`: packages of Go's own that the program needs besides."""
    imports = ["context", "log", "github.com/twmb/franz-go/pkg/kgo", *more]
    options = []
    if way.is_tls:
        imports += ["crypto/tls", "crypto/x509", "os"]
        options.append(f"kgo.DialTLSConfig({_tls(way)})")
    if way.mechanism:
        package, login = _franz_login(way)
        imports.append(f"github.com/twmb/franz-go/pkg/sasl/{package}")
        options.append(f"kgo.SASL({login})")
    return program.format(
        imports=_imports(imports),
        authority=_files(way),
        brokers=_strings(way.brokers),
        options="".join(f"\t\t{each},\n" for each in options),
        topic=way.topic,
        group=GROUP,
    )


def sarama(way: Way) -> str:
    """A producer."""
    return _sarama(way, _SARAMA)


def sarama_consumer(way: Way) -> str:
    """A member of a group, which goes on reading."""
    return _sarama(way, _SARAMA_CONSUMER, "context", "fmt")


def _sarama(way: Way, program: str, *more: str) -> str:
    """`more`: packages of Go's own that the program needs besides."""
    imports, settings, types = ["log", "github.com/IBM/sarama", *more], [], ""
    if way.is_tls:
        imports += ["crypto/tls", "crypto/x509", "os"]
        settings += ["Net.TLS.Enable = true", f"Net.TLS.Config = {_tls(way)}"]
    if way.mechanism:
        settings += ["Net.SASL.Enable = true", f"Net.SASL.Mechanism = {json.dumps(way.mechanism)}"]
    if way.has_password:
        settings.append(f"Net.SASL.User, config.Net.SASL.Password = {json.dumps(USER)}, {json.dumps(PASSWORD)}")
    if way.mechanism.startswith("SCRAM"):
        imports.append("github.com/xdg-go/scram")
        made = "func() sarama.SCRAMClient { return &conversation{} }"
        settings.append(f"Net.SASL.SCRAMClientGeneratorFunc = {made}")
        types = _CONVERSATION % ("SHA256" if way.mechanism.endswith("256") else "SHA512")
    if way.mechanism == BEARER:
        settings.append("Net.SASL.TokenProvider = tokens{}")
        types = _TOKENS % TOKEN
    return program.format(
        more=" github.com/xdg-go/scram" if way.mechanism.startswith("SCRAM") else "",
        imports=_imports(imports),
        settings=_files(way) + "".join(f"\tconfig.{each}\n" for each in settings),
        brokers=_strings(way.brokers),
        topic=way.topic,
        group=GROUP,
        types=types,
    )


def _franz_login(way: Way) -> tuple[str, str]:
    """The package of a mechanism, and how it is made."""
    if way.mechanism == BEARER:
        return "oauth", f"oauth.Auth{{Token: {json.dumps(TOKEN)}}}.AsMechanism()"
    who = f"Auth{{User: {json.dumps(USER)}, Pass: {json.dumps(PASSWORD)}}}"
    if way.mechanism == "PLAIN":
        return "plain", f"plain.{who}.AsMechanism()"
    return "scram", f"scram.{who}.AsSha{way.mechanism[-3:]}Mechanism()"


def _files(way: Way) -> str:
    """Statements that read what is trusted, and what is shown."""
    if not way.is_tls:
        return ""
    lines = [f"pem, err := os.ReadFile({json.dumps(AUTHORITY)})", *_FATAL]
    lines += ["trusted := x509.NewCertPool()", "trusted.AppendCertsFromPEM(pem)"]
    if way.shows:
        lines += [f"shown, err := tls.LoadX509KeyPair({json.dumps(CERTIFICATE)}, {json.dumps(KEY)})", *_FATAL]
    return "".join(f"\t{line}\n" for line in lines)


_FATAL = ("if err != nil {", "\tlog.Fatal(err)", "}")


def _tls(way: Way) -> str:
    shown = ", Certificates: []tls.Certificate{shown}" if way.shows else ""
    return f"&tls.Config{{RootCAs: trusted{shown}}}"


def _imports(packages: Iterable[str]) -> str:
    """As gofmt has them: Go's own first."""
    own = sorted(each for each in packages if "." not in each)
    others = sorted(each for each in packages if "." in each)
    return "\n".join("".join(f"\t{json.dumps(each)}\n" for each in part) for part in (own, others))


def _strings(texts: Iterable[str]) -> str:
    return ", ".join(json.dumps(each) for each in texts)
