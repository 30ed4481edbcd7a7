package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/internal/cache"
)

// userCache is the word for the directory that cacheDir picks.
const userCache = "user"

// cacheDir returns the directory of compiled artefacts: the given one, or
// "loris" in the user's directory of caches.
func cacheDir(given string) (string, error) {
	if given != userCache {
		return given, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory for caches: %w: name one", err)
	}
	return filepath.Join(dir, "loris"), nil
}

// cacheFlag adds --cache to a command that computes.
func cacheFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "cache", "", "keep what is compiled in a `folder`, for the next start; --cache alone takes the user's own")
	c.Flags().Lookup("cache").NoOptDefVal = userCache
}

func newCache() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "cache",
		Short: "Look after the cache of compiled artefacts on disk",
		Long: `Look after the cache of compiled artefacts on disk: what commands with --cache and
programs with loris.WithDiskCache keep from one start to the next. Other processes
may use the cache at the same time.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usagef("unknown command %q: there are ls, stat, verify and clear", args[0])
			}
			return c.Help()
		},
	}
	c.PersistentFlags().StringVar(&dir, "dir", userCache, "`folder` of the cache; "+userCache+" is the user's own")
	c.AddCommand(newCacheList(&dir), newCacheStat(&dir), newCacheVerify(&dir), newCacheClear(&dir))
	return c
}

// openCache opens a cache that is there.
func openCache(given string) (*cache.Disk, error) {
	dir, err := cacheDir(given)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no cache at %s: %w", dir, fs.ErrNotExist)
	}
	// Looking must not remove what a program with a larger bound keeps.
	return cache.OpenDisk(dir, cache.DiskOptions{MaxBytes: -1})
}

// cacheEntry is an entry in the output of `cache ls`.
type cacheEntry struct {
	Key   string    `json:"key"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"used"`
}

func newCacheList(dir *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the entries, those used last first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := openCache(*dir)
			if err != nil {
				return err
			}
			entries, err := d.List()
			if err != nil {
				return err
			}
			if asJSON {
				list := []cacheEntry{}
				for _, e := range entries {
					list = append(list, cacheEntry{e.Key.String(), e.Size, e.Used})
				}
				return command.PrintJSON(c.OutOrStdout(), list)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, e := range entries {
				fmt.Fprintf(tw, "%v\t%s\t%s\n", e.Key, humanize.IBytes(uint64(e.Size)), e.Used.Format(time.RFC3339))
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newCacheStat(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "stat",
		Short: "Tell how much there is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := openCache(*dir)
			if err != nil {
				return err
			}
			s, err := d.Stat()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d entries, %s, %d temporary files\n", d.Dir(), s.Entries, humanize.IBytes(uint64(s.Bytes)), s.Temps)
			return err
		},
	}
}

func newCacheVerify(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read all entries and remove the damaged ones",
		Long: `Read all entries and remove the damaged ones. Damage does no harm: it is found when
an entry is read, and the entry is made again. The exit code is 1 if there was any.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := openCache(*dir)
			if err != nil {
				return err
			}
			r, err := d.Verify(c.Context())
			for _, damage := range r.Damaged {
				fmt.Fprintln(c.OutOrStdout(), damage)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%d entries read, %s, %d damaged\n", r.Checked, humanize.IBytes(uint64(r.Bytes)), len(r.Damaged))
			if n := len(r.Damaged); n > 0 {
				return fmt.Errorf("%d damaged entries were removed", n)
			}
			return nil
		},
	}
}

func newCacheClear(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Remove all entries",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := openCache(*dir)
			if err != nil {
				return err
			}
			return d.Clear(c.Context())
		},
	}
}
