// sarama; `tests.clients` says what it reads and answers.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
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
	switch wanted.Do {
	case "exchange":
		if err := send(wanted, told, wanted.Records); err != nil {
			return err
		}
		return consume(wanted, told, wanted.Records)
	case "produce":
		return send(wanted, told, 1)
	case "consume":
		return consume(wanted, told, 1)
	case "steady":
		return steady(wanted, told)
	}
	return fmt.Errorf("nobody can %s", wanted.Do)
}

func send(wanted *job, told *answer, count int) error {
	producer, err := newProducer(wanted)
	if err != nil {
		return err
	}
	messages := make([]*sarama.ProducerMessage, count)
	for number := range messages {
		messages[number] = message(wanted, number)
	}
	err = producer.SendMessages(messages)
	if failed, ok := err.(sarama.ProducerErrors); ok && len(failed) > 0 {
		count, err = count-len(failed), failed[0].Err
	} else if err != nil {
		count = 0
	}
	told.Sent = count
	if closed := producer.Close(); err == nil {
		err = closed
	}
	return err
}

func steady(wanted *job, told *answer) error {
	producer, err := newProducer(wanted)
	if err != nil {
		return err
	}
	defer producer.Close()
	for end := time.Now().Add(seconds(wanted.Seconds)); time.Now().Before(end); told.Sent++ {
		if _, _, err := producer.SendMessage(message(wanted, told.Sent)); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

func newProducer(wanted *job) (sarama.SyncProducer, error) {
	config, err := settings(wanted)
	if err != nil {
		return nil, err
	}
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1 // which idempotence wants here
	config.Producer.Return.Successes = true
	return sarama.NewSyncProducer(strings.Split(wanted.Bootstrap, ","), config)
}

// A member of a group: it marks what it reads, and is done when it has read enough.
type member struct {
	count  int
	told   *answer
	values map[string]bool
	mutex  sync.Mutex
	done   func()
}

func (*member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case one, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(one, "")
			m.mutex.Lock()
			m.told.Received++
			m.values[string(one.Value)] = true
			if m.told.Received == m.count {
				m.done()
			}
			m.mutex.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func consume(wanted *job, told *answer, count int) error {
	config, err := settings(wanted)
	if err != nil {
		return err
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	group, err := sarama.NewConsumerGroup(strings.Split(wanted.Bootstrap, ","), wanted.Group, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), seconds(wanted.LimitS))
	defer cancel()
	reader := &member{count: count, told: told, values: map[string]bool{}, done: cancel}
	for ctx.Err() == nil { // it returns when the group is balanced anew
		if err := group.Consume(ctx, []string{wanted.Topic}, reader); err != nil {
			group.Close()
			return err
		}
	}
	told.Distinct = len(reader.values)
	if err := group.Close(); err != nil { // which commits what was marked
		return err
	}
	if told.Received < count {
		return fmt.Errorf("nothing has been said, and %d records have been read", told.Received)
	}
	return nil
}

func settings(wanted *job) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.ClientID = "clients"
	config.Version = sarama.V3_6_0_0
	if wanted.Mechanism != "" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Version = sarama.SASLHandshakeV1 // of version 0 nothing says how long a login is good
		config.Net.SASL.Mechanism = sarama.SASLMechanism(wanted.Mechanism)
		config.Net.SASL.User, config.Net.SASL.Password = wanted.User, wanted.Password
		config.Net.SASL.TokenProvider = token(wanted.Password)
		hashes := map[string]func() hash.Hash{"SCRAM-SHA-256": sha256.New, "SCRAM-SHA-512": sha512.New}
		if made := hashes[wanted.Mechanism]; made != nil {
			config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: made} }
		}
	}
	if wanted.CA == "" {
		return config, nil
	}
	trusted, err := os.ReadFile(wanted.CA)
	if err != nil {
		return nil, err
	}
	config.Net.TLS.Enable = true
	config.Net.TLS.Config = &tls.Config{RootCAs: x509.NewCertPool()}
	config.Net.TLS.Config.RootCAs.AppendCertsFromPEM(trusted)
	if wanted.Certificate != "" {
		shown, err := tls.LoadX509KeyPair(wanted.Certificate, wanted.Key)
		if err != nil {
			return nil, err
		}
		// Shown also where the server does not name its authority: it is the server that is to refuse it.
		config.Net.TLS.Config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &shown, nil
		}
	}
	return config, nil
}

// The same token, whenever it is asked for.
type token string

func (t token) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

// The exchange of SCRAM, which sarama leaves to its users.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

func message(wanted *job, number int) *sarama.ProducerMessage {
	key, value := fmt.Sprintf("k%d", number%keys), fmt.Sprintf("v%d", number)
	return &sarama.ProducerMessage{Topic: wanted.Topic, Key: sarama.StringEncoder(key), Value: sarama.StringEncoder(value)}
}

func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}
