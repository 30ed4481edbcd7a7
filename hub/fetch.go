package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// checksum is what the hub tells as an ETag: the SHA-256 of a large file, git's SHA-1 of another.
var checksum = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// description is what the hub says of a file.
type description struct {
	sum  string
	size int64
}

// file has a file of a repository in the cache.
func (c *Client) file(ctx context.Context, r *repository, repo, commit, name string) error {
	address := c.url("", repo, "resolve", commit, name)
	d, err := c.describe(ctx, address)
	if err != nil {
		return err
	}
	unlock, err := r.lock(ctx, d.sum)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(r.path("blobs"), 0o755); err != nil {
		return err
	}
	blob := r.path("blobs", d.sum)
	if _, err := os.Stat(blob); errors.Is(err, fs.ErrNotExist) {
		if err := c.fetch(ctx, address, blob, d); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return r.link(commit, name, d.sum)
}

// describe asks for the checksum and size of a file. Repositories that were renamed redirect on the same
// host; a redirection to another host is that to the file's contents.
func (c *Client) describe(ctx context.Context, address string) (*description, error) {
	for range 5 {
		res, err := c.get(ctx, http.MethodHead, address, nil)
		if err != nil {
			return nil, err
		}
		res.Body.Close()
		if err := status(res); err != nil {
			return nil, err
		}
		to := res.Header.Get("Location")
		if u, err := url.Parse(to); to != "" && err == nil && u.Host == "" && res.Header.Get("X-Linked-Etag") == "" {
			address = res.Request.URL.ResolveReference(u).String()
			continue
		}
		return describe(res)
	}
	return nil, errors.New("the hub redirects without end")
}

// describe reads a reply. Large files lie elsewhere, and the linked headers tell of them.
func describe(res *http.Response) (*description, error) {
	sum, size := res.Header.Get("X-Linked-Etag"), res.Header.Get("X-Linked-Size")
	if sum == "" {
		sum, size = res.Header.Get("Etag"), res.Header.Get("Content-Length")
	}
	d := &description{sum: strings.Trim(strings.TrimPrefix(sum, "W/"), `"`)}
	if !checksum.MatchString(d.sum) {
		return nil, fmt.Errorf("%w: the hub tells none that is known, but %q", ErrChecksum, sum)
	}
	var err error
	if d.size, err = strconv.ParseInt(size, 10, 64); err != nil || d.size < 0 {
		return nil, fmt.Errorf("the hub says that the file has %q bytes", size)
	}
	return d, nil
}

// retries bounds how often a download goes on without having got anything.
const retries = 5

// fetch downloads a file beside the blob, holds it against its checksum, and gives it the blob's name.
func (c *Client) fetch(ctx context.Context, address, blob string, d *description) error {
	part := blob + ".incomplete"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for idle, most := 0, int64(0); ; {
		have, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		if have >= d.size {
			break
		}
		if have > most {
			idle, most = 0, have
		}
		if err := c.more(ctx, address, f, have, d); err != nil {
			if idle++; idle == retries || !errors.Is(err, errBroken) {
				return err
			}
		}
	}
	if err := d.verify(f); err != nil {
		f.Close()
		return errors.Join(err, os.Remove(part))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, blob)
}

// errBroken is the error of a download that ended early, which may go on.
var errBroken = errors.New("the download broke off")

// more appends what comes to f, which has the first bytes.
func (c *Client) more(ctx context.Context, address string, f *os.File, have int64, d *description) error {
	var header map[string]string
	if have > 0 {
		header = map[string]string{"Range": fmt.Sprintf("bytes=%d-", have)}
	}
	res, err := c.get(ctx, http.MethodGet, address, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := status(res); err != nil {
		return err
	}
	if have > 0 && (res.StatusCode != http.StatusPartialContent || !strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have))) {
		// The server sends the whole file.
		if err := f.Truncate(0); err != nil {
			return err
		}
		if have, err = f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	n, err := io.Copy(f, io.LimitReader(res.Body, d.size-have+1)) // one byte too many shows in verify
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && isFileError(err):
		return err
	case err != nil || have+n < d.size:
		return fmt.Errorf("%w after %d of %d bytes: %w", errBroken, have+n, d.size, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// isFileError reports whether the disk, and not the network, is at fault.
func isFileError(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p)
}

// verify holds what arrived against the checksum.
func (d *description) verify(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size != d.size {
		return fmt.Errorf("%w: %d bytes arrived, the hub told of %d", ErrChecksum, size, d.size)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var h hash.Hash
	if len(d.sum) == 2*sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", size)
	}
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != d.sum {
		return fmt.Errorf("%w: what arrived has %s, the hub told of %s", ErrChecksum, got, d.sum)
	}
	return nil
}
