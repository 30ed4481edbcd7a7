package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/loris-ml/loris/internal/escape"
	"github.com/loris-ml/loris/internal/ir"
)

var (
	// ErrAccess is wrapped where the server wants a token, or another one.
	ErrAccess = errors.New("access denied")
	// ErrChecksum is wrapped where a file that arrived is not the one that the server told of. It is
	// deleted.
	ErrChecksum = errors.New("wrong checksum")
)

// Client downloads models into a cache. Its zero value does so as huggingface_hub would: from the
// Hub or HF_ENDPOINT, to the folder that HF_HUB_CACHE, HF_HOME or XDG_CACHE_HOME names, with the token of
// HF_TOKEN or the one that its login has stored. HF_HUB_OFFLINE=1 has it use no network. Many goroutines and
// processes may download to one cache at once.
type Client struct {
	Endpoint string // where the hub is, as "https://hub.example.org"
	Cache    string // the folder of the cache
	Token    string // sent to the endpoint only
	// HTTP makes the requests; nil is http.DefaultClient. What a server refuses for the moment, and
	// connections that fail, are tried again some times.
	HTTP *http.Client
}

// usual are the files that are downloaded unless others are named.
var usual = []string{"*.json", "*.safetensors", "*.txt", "*.model"}

// Download returns a folder with files of a repository at a revision (a branch, a tag or a commit; "" is
// main) and downloads those that the cache lacks. Patterns are those of path.Match, and of names of files
// with slashes; without any, these are configurations, tokenizers and weights at the top of the
// repository: *.json, *.safetensors, *.txt, *.model. A pattern that no file matches is an error that wraps
// ErrNotFound.
//
// What is not there wraps ErrNotFound, what a token is missing for ErrAccess, a file that arrived wrong
// ErrChecksum. Download blocks until it is done or ctx ends; what has arrived by then is kept, and another
// call goes on there.
func (c *Client) Download(ctx context.Context, repo, revision string, patterns ...string) (*Folder, error) {
	if err := ir.CheckContext("hub.Client.Download", ctx); err != nil {
		return nil, err
	}
	r, err := c.repository(repo)
	if err != nil {
		return nil, err
	}
	if revision, err = checkRevision(revision); err != nil {
		return nil, err
	}
	if offline := os.Getenv("HF_HUB_OFFLINE"); offline != "" && offline != "0" {
		return c.Cached(repo, revision)
	}
	commit, names, err := c.list(ctx, repo, revision)
	if err != nil {
		return nil, fmt.Errorf("hub: %s at %s: %w", repo, revision, err)
	}
	if names, err = choose(names, patterns); err != nil {
		return nil, fmt.Errorf("hub: %s at %s: %w", repo, revision, err)
	}
	for _, name := range names {
		if err := c.file(ctx, r, repo, commit, name); err != nil {
			return nil, fmt.Errorf("hub: %s of %s: %w", name, repo, err)
		}
	}
	if revision != commit {
		if err := r.setRef(revision, commit); err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
	}
	return c.Cached(repo, commit)
}

// choose returns the names that a pattern matches.
func choose(names, patterns []string) ([]string, error) {
	must := len(patterns) > 0
	if !must {
		patterns = usual
	}
	var chosen []string
	for _, p := range patterns {
		n := len(chosen)
		for _, name := range names {
			ok, err := path.Match(p, name)
			if err != nil {
				return nil, fmt.Errorf("the pattern %q: %w", p, err)
			}
			if ok {
				chosen = append(chosen, name)
			}
		}
		if must && len(chosen) == n {
			return nil, fmt.Errorf("%w: no file matches %q", ErrNotFound, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no file matches %s", ErrNotFound, strings.Join(patterns, ", "))
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// list asks for the commit of a revision and the names of its files.
func (c *Client) list(ctx context.Context, repo, revision string) (commit string, names []string, err error) {
	res, err := c.get(ctx, http.MethodGet, c.url("api/models", repo, "revision", revision), nil)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	if err := status(res); err != nil {
		return "", nil, err
	}
	var reply struct {
		SHA      string
		Siblings []struct{ RFilename string }
	}
	if err := decodeJSON(res.Body, &reply); err != nil {
		return "", nil, fmt.Errorf("the list of files: %w", err)
	}
	if !commitName.MatchString(reply.SHA) {
		return "", nil, fmt.Errorf("the list of files is of the commit %q, which is none", reply.SHA)
	}
	for _, s := range reply.Siblings {
		if err := checkName(s.RFilename); err != nil {
			return "", nil, err
		}
		names = append(names, s.RFilename)
	}
	return reply.SHA, names, nil
}

// url returns one of the endpoint. A revision's slashes are no separators there.
func (c *Client) url(kind, repo, verb, revision string, name ...string) string {
	base := cmp.Or(c.Endpoint, os.Getenv("HF_ENDPOINT"), "https://huggingface.co")
	u := strings.TrimRight(base, "/")
	if kind != "" {
		u += "/" + kind
	}
	u += "/" + repo + "/" + verb + "/" + url.PathEscape(revision)
	for _, n := range name {
		u += "/" + (&url.URL{Path: n}).EscapedPath()
	}
	return u
}

// token returns the client's, the environment's or the one of a login; empty without any.
func (c *Client) token() string {
	if t := cmp.Or(c.Token, os.Getenv("HF_TOKEN")); t != "" {
		return t
	}
	file := os.Getenv("HF_TOKEN_PATH")
	if file == "" {
		home, err := homeDir()
		if err != nil {
			return ""
		}
		file = filepath.Join(home, "token")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// get makes a request, several times where that may help. It follows redirections, which lose the token
// where they lead to another host, but for HEAD, whose reply is that of the endpoint itself.
func (c *Client) get(ctx context.Context, method, address string, header map[string]string) (*http.Response, error) {
	own := http.DefaultClient
	if c.HTTP != nil {
		own = c.HTTP
	}
	plain := *own
	if method == http.MethodHead {
		plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	again := retryablehttp.NewClient()
	again.HTTPClient, again.Logger = &plain, nil
	again.RetryWaitMin, again.RetryWaitMax = 200*time.Millisecond, 10*time.Second
	again.ErrorHandler = retryablehttp.PassthroughErrorHandler
	req, err := retryablehttp.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "loris")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are those of the files
	if t := c.token(); t != "" {
		req.Header.Set("Authorization", "Bearer "+t)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	return again.Do(req)
}

// status returns the error of a reply.
func status(res *http.Response) error {
	text := escape.Text(cmp.Or(res.Header.Get("X-Error-Message"), res.Status))
	switch {
	case res.StatusCode < 400:
		return nil
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %s (set HF_TOKEN or Client.Token; a repository that is not there is denied, too)", ErrAccess, text)
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, text)
	}
	return fmt.Errorf("the hub answers %s", text)
}
