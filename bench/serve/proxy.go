package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// proxy passes requests on to the server of the moment, over HTTP/1.1 and HTTP/2. One that the server
// did not answer because it went away is sent to the next one once.
type proxy struct {
	backend atomic.Pointer[url.URL]
	server  *http.Server
	address string
	again   atomic.Int64 // requests that were sent twice
}

// startProxy listens; requests wait for no server, so the first must be set before.
func startProxy(first *url.URL) (*proxy, error) {
	p := &proxy{}
	p.backend.Store(first)
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.address = l.Addr().String()
	one, two := &http.Transport{MaxIdleConnsPerHost: 256}, &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(p.backend.Load()) },
		Transport:     &twice{p, one, two},
		FlushInterval: -1,
		ErrorHandler:  refuse,
	}
	p.server = &http.Server{Handler: pass, Protocols: new(http.Protocols)}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = p.server.Serve(l) }() // until Close
	return p, nil
}

// refuse tells a client that no server answered, as its protocol says that.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor < 2 {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", "14") // UNAVAILABLE
	w.Header().Set("Grpc-Message", "no server answered")
}

// twice is a transport that sends a request again where no answer has begun.
type twice struct {
	*proxy
	one, two *http.Transport
}

func (t *twice) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	transport := t.one
	if r.ProtoMajor == 2 {
		transport = t.two
	}
	for try := 0; ; try++ {
		r.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := transport.RoundTrip(r)
		if err == nil || try == 1 || r.Context().Err() != nil || errors.Is(err, context.Canceled) {
			return resp, err
		}
		t.again.Add(1)
		u := t.backend.Load()
		r = r.Clone(r.Context())
		r.URL.Host, r.Host = u.Host, u.Host
	}
}
