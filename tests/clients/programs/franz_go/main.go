// franz-go; `tests.clients` says what it reads and answers.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	keys  = 97
	pause = 10 * time.Millisecond
)

type job struct {
	Name, Do, Bootstrap, Protocol, Mechanism, User, Password string
	CA, Certificate, Key, Topic, Group                       string
	Records                                                  int
	Seconds                                                  float64
	LimitS                                                   float64 `json:"limit_s"`
}

type answer struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Words    string `json:"words"`
	Sent     int    `json:"sent"`
	Received int    `json:"received"`
	Distinct int    `json:"distinct"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var wanted job
		if err := json.Unmarshal(lines.Bytes(), &wanted); err != nil {
			panic(err)
		}
		told := answer{Name: wanted.Name, OK: true}
		if err := perform(&wanted, &told); err != nil {
			told.OK, told.Words = false, err.Error()
		}
		line, _ := json.Marshal(told)
		fmt.Println(string(line))
	}
}

func perform(wanted *job, told *answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), seconds(wanted.LimitS+wanted.Seconds))
	defer cancel()
	switch wanted.Do {
	case "exchange":
		if err := send(ctx, wanted, told, wanted.Records); err != nil {
			return err
		}
		return consume(ctx, wanted, told, wanted.Records)
	case "produce":
		return send(ctx, wanted, told, 1)
	case "consume":
		return consume(ctx, wanted, told, 1)
	case "steady":
		return steady(ctx, wanted, told)
	}
	return fmt.Errorf("nobody can %s", wanted.Do)
}

func send(ctx context.Context, wanted *job, told *answer, count int) error {
	client, err := connected(ctx, wanted)
	if err != nil {
		return err
	}
	defer client.Close()
	records := make([]*kgo.Record, count)
	for number := range records {
		records[number] = record(wanted, number)
	}
	for _, result := range client.ProduceSync(ctx, records...) {
		if result.Err != nil {
			err = errors.Join(err, result.Err)
			break
		}
		told.Sent++
	}
	return err
}

func steady(ctx context.Context, wanted *job, told *answer) error {
	client, err := connected(ctx, wanted)
	if err != nil {
		return err
	}
	defer client.Close()
	results := make(chan error, 100_000)
	sent := 0
	for end := time.Now().Add(seconds(wanted.Seconds)); time.Now().Before(end); sent++ {
		client.Produce(ctx, record(wanted, sent), func(_ *kgo.Record, err error) { results <- err })
		time.Sleep(pause)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	for range sent {
		if err := <-results; err != nil {
			return err
		}
		told.Sent++
	}
	return nil
}

func consume(ctx context.Context, wanted *job, told *answer, count int) error {
	client, err := connected(ctx, wanted, kgo.ConsumerGroup(wanted.Group), kgo.ConsumeTopics(wanted.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	values := map[string]bool{}
	for told.Received < count {
		fetches := client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			return failed.Err
		}
		fetches.EachRecord(func(one *kgo.Record) {
			told.Received++
			values[string(one.Value)] = true
		})
	}
	told.Distinct = len(values)
	return client.CommitUncommittedOffsets(ctx)
}

// A client that has spoken to a broker: of what goes wrong before that it tells in its answer to a ping.
func connected(ctx context.Context, wanted *job, more ...kgo.Opt) (*kgo.Client, error) {
	options := append(more, kgo.SeedBrokers(strings.Split(wanted.Bootstrap, ",")...),
		kgo.RecordDeliveryTimeout(seconds(wanted.LimitS)),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)))
	if mechanism := mechanism(wanted); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	if wanted.CA != "" {
		config, err := tlsConfig(wanted)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func mechanism(wanted *job) sasl.Mechanism {
	login := scram.Auth{User: wanted.User, Pass: wanted.Password}
	switch wanted.Mechanism {
	case "PLAIN":
		return plain.Auth{User: wanted.User, Pass: wanted.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return login.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return login.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: wanted.Password}.AsMechanism()
	}
	return nil
}

func tlsConfig(wanted *job) (*tls.Config, error) {
	trusted, err := os.ReadFile(wanted.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(trusted)
	if wanted.Certificate != "" {
		shown, err := tls.LoadX509KeyPair(wanted.Certificate, wanted.Key)
		if err != nil {
			return nil, err
		}
		// Shown also where the server does not name its authority: it is the server that is to refuse it.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	}
	return config, nil
}

func record(wanted *job, number int) *kgo.Record {
	key, value := fmt.Sprintf("k%d", number%keys), fmt.Sprintf("v%d", number)
	return &kgo.Record{Topic: wanted.Topic, Key: []byte(key), Value: []byte(value)}
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}
