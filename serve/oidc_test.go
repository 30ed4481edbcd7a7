package serve

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tokenIssuer is an issuer of OpenID Connect with one key.
type tokenIssuer struct {
	*httptest.Server
	t       testing.TB
	key     *rsa.PrivateKey
	kid     string
	fetched atomic.Int32 // how often its keys were
}

func newTokenIssuer(t testing.TB) *tokenIssuer {
	t.Helper()
	i := &tokenIssuer{t: t, kid: "first"}
	var err error
	if i.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		encode := base64.RawURLEncoding.EncodeToString
		answer(w, map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.kid,
			"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes()),
		}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// token returns one that is valid for an hour, with some claims replaced or, where they
// are nil, left out.
func (i *tokenIssuer) token(claims map[string]any) string {
	return i.signed(map[string]any{"alg": "RS256", "kid": i.kid}, claims)
}

func (i *tokenIssuer) signed(header, claims map[string]any) string {
	i.t.Helper()
	all := map[string]any{"iss": i.URL, "sub": "someone", "aud": []string{"others", "loris-test"}, "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			i.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(header) + "." + part(all)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// Tokens of an issuer are taken if they are valid and for this server, whatever else has
// been tampered with.
func TestOIDC(t *testing.T) {
	issuer, other := newTokenIssuer(t), newTokenIssuer(t)
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	o := OIDC{Issuer: issuer.URL, Audience: "loris-test"}
	hs := start(t, Options{Models: dir, OIDC: o})
	o.Claim = "roles"
	roles := start(t, Options{Models: dir, OIDC: o})
	hour := time.Now().Add(time.Hour).Unix()
	good := issuer.token(map[string]any{"scope": "openid loris:inference"})
	for _, c := range []struct {
		who, url, token string
		want            int
	}{
		{"a good one", hs.URL, good, 200},
		{"a good one again", hs.URL, good, 200},
		{"all", hs.URL, issuer.token(map[string]any{"scope": "loris:all"}), 200},
		{"a list", hs.URL, issuer.token(map[string]any{"scope": []string{"loris:inference"}}), 200},
		{"the claim that was asked for", roles.URL, issuer.token(map[string]any{"roles": []string{"loris:inference"}}), 200},
		{"another claim", roles.URL, good, 403},
		{"no claim", hs.URL, issuer.token(nil), 403},
		{"a claim that is a number", hs.URL, issuer.token(map[string]any{"scope": 7}), 403},
		{"words for other servers", hs.URL, issuer.token(map[string]any{"scope": "inference all loris: loris:everything"}), 403},
		{"another scope", hs.URL, issuer.token(map[string]any{"scope": "loris:metadata"}), 403},
		{"another audience", hs.URL, issuer.token(map[string]any{"scope": "loris:all", "aud": "others"}), 401},
		{"no audience", hs.URL, issuer.token(map[string]any{"scope": "loris:all", "aud": nil}), 401},
		{"another issuer", hs.URL, other.token(map[string]any{"scope": "loris:all"}), 401},
		{"another's key", hs.URL, other.token(map[string]any{"scope": "loris:all", "iss": issuer.URL}), 401},
		{"expired", hs.URL, issuer.token(map[string]any{"scope": "loris:all", "exp": time.Now().Add(-time.Hour).Unix()}), 401},
		{"without an end", hs.URL, issuer.token(map[string]any{"scope": "loris:all", "exp": nil}), 401},
		{"not valid yet", hs.URL, issuer.token(map[string]any{"scope": "loris:all", "nbf": hour, "exp": hour + 1}), 401},
		{"tampered with", hs.URL, good[:len(good)-8] + "AAAAAAAA", 401},
		{"without a signature", hs.URL, issuer.signed(map[string]any{"alg": "none"}, map[string]any{"scope": "loris:all"})[:80], 401},
		{"signed with nothing", hs.URL, unsigned(issuer), 401},
		{"no token", hs.URL, "", 401},
		{"no JWT", hs.URL, "secret", 401},
		{"an endless one", hs.URL, strings.Repeat("A", 20_000) + ".e30.AA", 401},
	} {
		code, answer := ask(t, "POST", c.url+"/v2/models/m/infer", oneRow, "Authorization", "Bearer "+c.token)
		if code != c.want {
			t.Errorf("%s: %d %s, want %d", c.who, code, answer, c.want)
		}
	}
	if code, answer := ask(t, "GET", hs.URL+"/v2/health/ready", ""); code != 200 {
		t.Error(code, answer)
	}
	// Keys that nobody has heard of do not have the issuer asked for each of them.
	before := issuer.fetched.Load()
	for range 50 {
		ask(t, "GET", hs.URL+"/v2", "", "Authorization", "Bearer "+issuer.signed(map[string]any{"alg": "RS256", "kid": rand.Text()}, nil))
	}
	if n := issuer.fetched.Load() - before; n > 10 {
		t.Errorf("the issuer was asked %d times for unknown keys", n)
	}
}

// unsigned is a token whose header says that it needs no signature.
func unsigned(i *tokenIssuer) string {
	text := i.signed(map[string]any{"alg": "none"}, map[string]any{"scope": "loris:all"})
	return text[:strings.LastIndex(text, ".")+1]
}

// An issuer that cannot be asked is no reason to take a token, nor to call it wrong.
func TestOIDCIssuerIsGone(t *testing.T) {
	issuer := newTokenIssuer(t)
	token := issuer.token(map[string]any{"scope": "loris:all"})
	issuer.Close()
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	hs := start(t, Options{Models: dir, OIDC: OIDC{Issuer: issuer.URL, Audience: "loris-test"}})
	for range 2 {
		if code, answer := ask(t, "GET", hs.URL+"/v2", "", "Authorization", "Bearer "+token); code != 503 || !strings.Contains(answer, "issuer") {
			t.Error(code, answer)
		}
	}
}
