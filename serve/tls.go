package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificates reads a certificate anew when its files change, so that one that is
// renewed needs no restart.
type certificates struct {
	cert, key string
	mu        sync.Mutex
	asked     time.Time
	seen      [2]time.Time
	current   *tls.Certificate
}

// lookAgain is how often the files are looked at.
const lookAgain = 5 * time.Second

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.asked) > lookAgain {
		c.asked = now
		// One that cannot be read, half of a pair for instance, leaves the last good one.
		if err := c.read(); err != nil && c.current == nil {
			return nil, err
		}
	}
	return c.current, nil
}

func (c *certificates) read() error {
	var times [2]time.Time
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		times[i] = info.ModTime()
	}
	if c.current != nil && times == c.seen {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.seen = &pair, times
	return nil
}

// tlsFromFiles returns the configuration of a listener; nil without a certificate.
func tlsFromFiles(cert, key, ca string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	c := &certificates{cert: cert, key: key}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	if ca == "" {
		return config, nil
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", ca)
	}
	return config, nil
}
