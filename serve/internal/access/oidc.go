package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// OIDC says whose tokens are taken: those of an issuer of OpenID Connect.
type OIDC struct {
	// Issuer is its URL, below which its configuration is found; empty for none.
	Issuer string
	// Audience must be among a token's audiences.
	Audience string
	// Claim names what has the scopes: "scope" for "". Of its words, or its list, those
	// count that begin with "loris:", as "loris:inference" and "loris:all".
	Claim string
}

// claimPrefix begins the words of a claim that are meant for this server.
const claimPrefix = "loris:"

// issuer verifies tokens with the keys of their issuer, which it fetches when it first
// needs them, and again when a token has another key.
type issuer struct {
	OIDC
	client *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
	asked    time.Time // when the configuration was last asked for
	failed   error
	known    map[[sha256.Size]byte]known // of tokens that were verified
}

// known is what a token allows until it expires.
type known struct {
	scopes  []inference.Scope
	expires time.Time
}

const (
	// maxKnown bounds how many tokens are remembered.
	maxKnown = 4096
	// fetchAgain is how often the issuer is asked at most, whatever tokens come.
	fetchAgain = 5 * time.Second
	// maxFetched bounds what an issuer answers.
	maxFetched = 1 << 20
)

func newIssuer(o OIDC) (*issuer, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("the issuer of tokens is %q: expected a URL", o.Issuer)
	}
	if host := u.Hostname(); u.Scheme == "http" && host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return nil, fmt.Errorf("the issuer of tokens is %q: expected https, since its keys decide who may do what", o.Issuer)
	}
	if o.Audience == "" {
		return nil, errors.New("tokens of an issuer need an audience: without one those for other services would be taken")
	}
	if o.Claim == "" {
		o.Claim = "scope"
	}
	return &issuer{
		OIDC: o, known: map[[sha256.Size]byte]known{},
		client: &http.Client{Timeout: 10 * time.Second, Transport: &throttled{answers: map[string]*answer{}}},
	}, nil
}

// scopes returns what a token allows: an *inference.Error of the kind Unauthenticated for
// one that is not valid, and Unavailable if the issuer cannot be asked.
func (i *issuer) scopes(ctx context.Context, token string) ([]inference.Scope, error) {
	sum := sha256.Sum256([]byte(token))
	now := time.Now()
	i.mu.Lock()
	k, ok := i.known[sum]
	i.mu.Unlock()
	if ok && now.Before(k.expires) {
		return k.scopes, nil
	}
	v, err := i.discover(ctx, now)
	if err != nil {
		return nil, inference.Errorf(inference.Unavailable, "the issuer of tokens cannot be asked: %w", err)
	}
	t, err := v.Verify(oidc.ClientContext(ctx, i.client), token)
	if err != nil {
		var transport *url.Error
		if errors.As(err, &transport) {
			return nil, inference.Errorf(inference.Unavailable, "the issuer of tokens cannot be asked: %w", err)
		}
		return nil, inference.Errorf(inference.Unauthenticated, "the token is not valid: %w", err)
	}
	claims := map[string]json.RawMessage{}
	if err := t.Claims(&claims); err != nil {
		return nil, inference.Errorf(inference.Unauthenticated, "the token's claims: %w", err)
	}
	if err := notBefore(claims["nbf"], now); err != nil {
		return nil, err
	}
	k = known{scopes: claimed(claims[i.Claim]), expires: t.Expiry}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= maxKnown {
		clear(i.known) // they are verified once more
	}
	i.known[sum] = k
	return k.scopes, nil
}

// discover returns what verifies tokens, and fetches the issuer's configuration if that
// has not been done.
func (i *issuer) discover(ctx context.Context, now time.Time) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	if i.failed != nil && now.Sub(i.asked) < fetchAgain {
		return nil, i.failed
	}
	// The client that asks first may go: the others wait for the same.
	p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), i.client), i.Issuer)
	i.asked, i.failed = now, err
	if err != nil {
		return nil, err
	}
	i.verifier = p.VerifierContext(oidc.ClientContext(context.Background(), i.client), &oidc.Config{ClientID: i.Audience})
	return i.verifier, nil
}

// notBefore refuses a token that is valid only later, clocks being a minute apart.
func notBefore(claim json.RawMessage, now time.Time) error {
	if claim == nil {
		return nil
	}
	var seconds float64
	if err := json.Unmarshal(claim, &seconds); err != nil || seconds > float64(now.Add(time.Minute).Unix()) {
		return inference.Errorf(inference.Unauthenticated, "the token is not valid yet")
	}
	return nil
}

// claimed reads scopes from a claim: words in one text, or a list of them. Those that are
// not meant for this server say nothing.
func claimed(claim json.RawMessage) []inference.Scope {
	var words []string
	var text string
	if json.Unmarshal(claim, &text) == nil {
		words = strings.Fields(text)
	} else if json.Unmarshal(claim, &words) != nil {
		return nil
	}
	scopes := []inference.Scope{}
	for _, word := range words {
		name, ours := strings.CutPrefix(word, claimPrefix)
		if !ours {
			continue
		}
		if name == "all" {
			return slices.Clone(All)
		}
		if s, err := parseScope(name); err == nil {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// throttled keeps what an issuer answered for a while: a token may name any key, and each
// with another name would have the keys fetched anew.
type throttled struct {
	mu      sync.Mutex
	answers map[string]*answer
}

type answer struct {
	at   time.Time
	resp *http.Response
	body []byte
	err  error
}

// RoundTrip asks, or returns the last answer.
func (t *throttled) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := r.URL.String()
	a := t.answers[key]
	if a == nil || time.Since(a.at) > fetchAgain {
		a = fetch(r)
		t.answers[key] = a // few: the configuration and the keys
	}
	if a.err != nil {
		return nil, a.err
	}
	copied := *a.resp
	copied.Header, copied.Request, copied.Body = a.resp.Header.Clone(), r, io.NopCloser(bytes.NewReader(a.body))
	return &copied, nil
}

func fetch(r *http.Request) *answer {
	a := &answer{at: time.Now()}
	if a.resp, a.err = http.DefaultTransport.RoundTrip(r); a.err == nil {
		defer a.resp.Body.Close()
		a.body, a.err = io.ReadAll(io.LimitReader(a.resp.Body, maxFetched))
	}
	return a
}
