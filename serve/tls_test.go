package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, time.Hour)
	return a
}

// sign makes a certificate that is valid until some time from now; of the authority itself where that
// has none.
func (a *authority) sign(template *x509.Certificate, valid time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(valid)
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(1)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// pair returns a certificate and its key in PEM form.
func (a *authority) pair(serial int64, valid time.Duration) (cert, key []byte) {
	a.t.Helper()
	c, k := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, valid)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Clients need a certificate that is valid and of the authority, where there is one.
func TestClientCertificates(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	dir := t.TempDir()
	cert, key := ours.pair(1, time.Hour)
	o := Options{CertFile: write(t, dir, "cert", cert), KeyFile: write(t, dir, "key", key), CAFile: write(t, dir, "ca", ours.pem())}
	config, err := tlsFromFiles(o.CertFile, o.KeyFile, o.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	hs := httpServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- hs.Serve(l) }()
	defer func() { hs.Close(); <-done }()
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	for _, c := range []struct {
		who   string
		by    *authority
		valid time.Duration
		want  string
	}{
		{"nobody", nil, 0, "certificate required"},
		{"one of another authority", theirs, time.Hour, "unknown certificate authority"},
		{"one whose certificate has expired", ours, -time.Hour, "expired certificate"},
		{"one of ours", ours, time.Hour, ""},
	} {
		config := &tls.Config{RootCAs: roots}
		if c.by != nil {
			pair, err := tls.X509KeyPair(c.by.pair(2, c.valid))
			if err != nil {
				t.Fatal(err)
			}
			// Sent whatever authorities the server asks for.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		transport := &http.Transport{TLSClientConfig: config}
		resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get("https://" + l.Addr().String())
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.who, err, c.want)
		}
		transport.CloseIdleConnections()
	}
	if _, err := tlsFromFiles(o.CertFile, o.KeyFile, o.KeyFile); err == nil || !strings.Contains(err.Error(), "no certificate in PEM form") {
		t.Error(err)
	}
	if _, err := tlsFromFiles(o.CertFile, filepath.Join(dir, "none"), ""); err == nil {
		t.Error("a key that is not there is no error")
	}
}

// A certificate that is renewed is used without a restart; one that cannot be read, or has the key of
// another, leaves the one before.
func TestCertificateIsReadAgain(t *testing.T) {
	a := newAuthority(t, "ours")
	dir := t.TempDir()
	put := func(cert, key []byte, at int64) {
		t.Helper()
		for name, text := range map[string][]byte{"cert": cert, "key": key} {
			if err := os.Chtimes(write(t, dir, name, text), time.Time{}, time.Unix(at, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, firstKey := a.pair(1, time.Hour)
	second, secondKey := a.pair(2, time.Hour)
	put(first, firstKey, 1e9)
	c := &certificates{cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key")}
	serial := func() int64 {
		t.Helper()
		c.asked = time.Time{} // as if some seconds had gone by
		got, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(got.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Fatal(n)
	}
	put(second, firstKey, 1e9+1)
	if n := serial(); n != 1 {
		t.Errorf("half of a pair: %d", n)
	}
	put(second, secondKey, 1e9+2)
	if n := serial(); n != 2 {
		t.Errorf("renewed: %d", n)
	}
	put([]byte("no certificate"), secondKey, 1e9+3)
	if n := serial(); n != 2 {
		t.Errorf("damaged: %d", n)
	}
}
