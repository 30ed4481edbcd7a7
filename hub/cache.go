package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/loris-ml/loris/internal/atomicfile"
	"github.com/loris-ml/loris/internal/filelock"
)

// repository is the folder of one repository in the cache:
//
//	models--org--name/refs/main                        the commit of a branch or tag
//	models--org--name/blobs/CHECKSUM                   files; CHECKSUM.incomplete while they arrive
//	models--org--name/snapshots/COMMIT/config.json     links to them
//	.locks/models--org--name/CHECKSUM.lock
type repository struct {
	cache, folder string
}

// repoName is what repositories are called: a name, or that of an owner and one.
var repoName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?$`)

// commitName is a whole commit.
var commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)

func (c *Client) repository(repo string) (*repository, error) {
	if !repoName.MatchString(repo) || strings.Contains(repo, "--") || strings.Contains(repo, "..") {
		return nil, fmt.Errorf("hub: %q is no name of a repository, such as \"openai-community/gpt2\"", repo)
	}
	cache, err := c.cacheDir()
	if err != nil {
		return nil, err
	}
	return &repository{cache, "models--" + strings.ReplaceAll(repo, "/", "--")}, nil
}

// path returns a path below the repository's folder.
func (r *repository) path(parts ...string) string {
	return filepath.Join(append([]string{r.cache, r.folder}, parts...)...)
}

// cacheDir is where huggingface_hub has its cache.
func (c *Client) cacheDir() (string, error) {
	if c.Cache != "" {
		return c.Cache, nil
	}
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir, nil
	}
	home, err := homeDir()
	return filepath.Join(home, "hub"), err
}

// homeDir is where huggingface_hub keeps what it keeps.
func homeDir() (string, error) {
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "huggingface"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("hub: the cache has no place: %w", err)
	}
	return filepath.Join(home, ".cache", "huggingface"), nil
}

// Cached returns what the cache has of a repository at a revision (a branch, a tag or a commit; "" is
// main), without a network. The folder has the files that were downloaded, which may not be all.
func (c *Client) Cached(repo, revision string) (*Folder, error) {
	r, err := c.repository(repo)
	if err != nil {
		return nil, err
	}
	if revision, err = checkRevision(revision); err != nil {
		return nil, err
	}
	commit := revision
	if !commitName.MatchString(revision) {
		b, err := os.ReadFile(r.path("refs", filepath.FromSlash(revision)))
		if err != nil {
			return nil, fmt.Errorf("hub: %s at %s is not in the cache: %w: %w", repo, revision, ErrNotFound, err)
		}
		if commit = strings.TrimSpace(string(b)); !commitName.MatchString(commit) {
			return nil, fmt.Errorf("hub: %s is no commit", r.path("refs", revision))
		}
	}
	f, err := Open(r.path("snapshots", commit))
	if err != nil {
		return nil, err
	}
	f.commit = commit
	return f, nil
}

// checkRevision returns the revision, main for none.
func checkRevision(revision string) (string, error) {
	if revision == "" {
		return "main", nil
	}
	if err := checkName(revision); err != nil || strings.ContainsAny(revision, "?#%") {
		return "", fmt.Errorf("hub: %q is no revision", revision)
	}
	return revision, nil
}

// lock locks a blob until the function that it returns is called. Files of locks stay, as theirs do.
func (r *repository) lock(ctx context.Context, sum string) (unlock func(), err error) {
	dir := filepath.Join(r.cache, ".locks", r.folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, sum+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(ctx, f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// link makes a snapshot's file lead to a blob: by a symbolic link, or by a hard one where the system
// gives users no symbolic ones.
func (r *repository) link(commit, name, sum string) error {
	at := r.path("snapshots", commit, filepath.FromSlash(name))
	blob := r.path("blobs", sum)
	if is, err := os.Stat(at); err == nil {
		if want, err := os.Stat(blob); err == nil && os.SameFile(is, want) {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := filepath.Rel(filepath.Dir(at), blob)
	if err != nil {
		return err
	}
	err = os.Symlink(to, at)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Link(blob, at)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	return err
}

// setRef says which commit a branch or tag is.
func (r *repository) setRef(revision, commit string) error {
	path := r.path("refs", filepath.FromSlash(revision))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, commit)
		return err
	})
}
