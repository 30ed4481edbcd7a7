package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/serve"
)

func newServe() *cobra.Command {
	var o serve.Options
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [[NAME=]MODEL...]",
		Short: "Serve models over REST and gRPC",
		Long: `Serve models by the Open Inference Protocol v2, with Triton's extensions, as REST
and gRPC on one port. MODEL is a package of AOTInductor (.pt2, .so) or a lazy program
(.lir); it is served as version 1 of a model of the file's name. --models is a folder
in Triton's layout, NAME/[config.pbtxt]/VERSION/model.pt2, where configurations are
optional.

Loading a package executes code that is in it: see --verify and --allow-digest. What
changes something (model-repository, weights, logging, trace) is closed unless
--allow or a token opens it.

SIGTERM and SIGINT make the server unready, drain it and stop it.`,
		ValidArgsFunction: packageArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.Files = args
			if err := f.finish(c, &o); err != nil {
				return err
			}
			if f.verify {
				return verifyModels(c, &o)
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			if err := serve.Run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}
	f.add(c, &o)
	return c
}

// serveFlags are the flags that are no field of the options.
type serveFlags struct {
	mode, digests, logLevel string
	budget                  string
	verify, exitOnError     bool
	page                    bool
}

func (f *serveFlags) add(c *cobra.Command, o *serve.Options) {
	fs := c.Flags()
	fs.StringVar(&o.Models, "models", "", "`folder` of models in Triton's layout")
	fs.StringVar(&o.ModelName, "model-name", "", "`name` of the model, if that folder has its file or its versions directly")
	fs.StringArrayVar(&o.Weights, "weights", nil, "safetensors `file` for the model of the same place in the arguments")
	fs.StringVar(&f.mode, "mode", "none", "when models are loaded: none (all at the start), explicit (--load-model and requests) or poll")
	fs.StringArrayVar(&o.Load, "load-model", nil, "`name` of a model to load in mode explicit")
	fs.DurationVar(&o.PollInterval, "poll-interval", 0, "how often mode poll looks (default 15s)")
	fs.BoolVar(&f.exitOnError, "exit-on-error", true, "stop if a model cannot be loaded at the start")
	fs.StringVar(&f.budget, "memory-budget", "", "`bytes`, such as 8GiB, that loaded models may hold; those used least recently are unloaded until they are asked for again")
	fs.DurationVar(&o.LoadWait, "load-wait", 0, "how long a request waits for such a model (default 30s)")
	fs.StringVar(&f.digests, "allow-digest", "", "sha256 sums that packages may have, with commas, or a `file` of them")
	fs.BoolVar(&f.verify, "verify", false, "inspect the models without running them, and stop")
	fs.StringVar(&o.HTTPAddress, "http", ":8080", "`address` of REST, gRPC and metrics")
	fs.StringVar(&o.GRPCAddress, "grpc", "", "a second `address`, as clients expect gRPC on")
	fs.StringVar(&o.AdminAddress, "admin", "", "`address` of profiles for go tool pprof, for who has the scope profiling")
	fs.BoolVar(&o.AllowWeightUpdate, "allow-weight-update", false, "let those with the scope weights replace the weights of loaded models")
	fs.BoolVar(&o.AllowClientSharedMemory, "allow-client-shm", false, "let those with the scope shared-memory register shared memory of this machine for tensors")
	fs.StringVar(&o.WeightsDir, "weights-dir", "", "`folder` of files that they may name for it")
	fs.StringSliceVar(&o.Allow, "allow", nil, "`scopes` that are open to everybody besides those that change nothing, such as model-repository")
	fs.StringVar(&o.TokenFile, "tokens", "", "`file` with lines of a bearer token and its scopes, or all")
	fs.StringVar(&o.OIDC.Issuer, "oidc-issuer", "", "`URL` of an issuer of OpenID Connect whose tokens are taken")
	fs.StringVar(&o.OIDC.Audience, "oidc-audience", "", "`audience` that these tokens must have")
	fs.StringVar(&o.OIDC.Claim, "oidc-claim", "", "`claim` that has their scopes, as loris:inference or loris:all (default scope)")
	fs.StringVar(&o.CertFile, "tls-cert", "", "`file` of the certificate, read again when it changes")
	fs.StringVar(&o.KeyFile, "tls-key", "", "`file` of its key")
	fs.StringVar(&o.CAFile, "tls-client-ca", "", "`file` of the authorities whose client certificates are required")
	fs.Int64Var(&o.MaxBody, "max-body", 64<<20, "`bytes` that a request may have")
	fs.DurationVar(&o.DrainTimeout, "drain-timeout", 0, "how long requests in flight may take at the end (default 30s)")
	fs.BoolVar(&o.JSONNaN, "json-nan", false, "read and write NaN and infinities in JSON")
	fs.BoolVar(&f.page, "page", true, "a page for people at /")
	fs.BoolVar(&o.TritonMetrics, "triton-metrics", false, "metrics under Triton's names, too")
	fs.StringVar(&o.TraceEndpoint, "otlp", "", "`URL` of a collector that gets spans by OTLP over HTTP, as http://localhost:4318")
	fs.Int64Var(&o.TraceRate, "trace-rate", 0, "trace one of so many `requests`, besides those that clients trace (default 1)")
	fs.BoolVar(&o.AccessLog, "access-log", false, "write a line for each request")
	fs.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

// finish fills in the options that flags only hint at.
func (f *serveFlags) finish(c *cobra.Command, o *serve.Options) error {
	version, _ := command.Version()
	o.Mode, o.KeepGoing, o.NoPage, o.Version = serve.Mode(f.mode), !f.exitOnError, !f.page, version
	if len(o.Files) == 0 && o.Models == "" {
		return command.Usagef("there is nothing to serve: name models, or a folder with --models")
	}
	o.Level = new(slog.LevelVar)
	if err := o.Level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return command.Usagef("--log-level: %v", err)
	}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.Level}))
	if f.budget != "" {
		bytes, err := humanize.ParseBytes(f.budget)
		if err != nil || bytes == 0 || bytes > math.MaxInt64 {
			return command.Usagef("--memory-budget: %q is no number of bytes, such as 8GiB", f.budget)
		}
		o.MemoryBudget = int64(bytes)
	}
	if f.digests == "" {
		return nil
	}
	var err error
	o.AllowDigests, err = digestList(f.digests)
	return err
}

// digestList reads sums from a list with commas, or from a file as sha256sum writes it.
func digestList(text string) ([]string, error) {
	file, err := os.Open(text)
	if err != nil {
		return strings.Split(text, ","), nil
	}
	defer file.Close()
	all := []string{}
	for s := bufio.NewScanner(file); s.Scan(); {
		if sum, _, _ := strings.Cut(strings.TrimSpace(s.Text()), " "); sum != "" && sum[0] != '#' {
			all = append(all, sum)
		}
	}
	return all, nil
}

// verifyModels inspects all packages. Its error says how many cannot be served.
func verifyModels(c *cobra.Command, o *serve.Options) error {
	paths := []string{}
	for _, file := range o.Files {
		if _, path, named := strings.Cut(file, "="); named {
			file = path
		}
		paths = append(paths, file)
	}
	if o.Models != "" {
		found, err := filepath.Glob(filepath.Join(o.Models, "*", "[1-9]*", "*.pt2"))
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	bad := 0
	for _, path := range paths {
		if err := verifyModel(c, path); err != nil {
			bad++
			fmt.Fprintf(c.OutOrStdout(), "%s: %v\n", path, err)
		} else {
			fmt.Fprintf(c.OutOrStdout(), "%s: can be served\n", path)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d models cannot be served", bad, len(paths))
	}
	return nil
}

func verifyModel(c *cobra.Command, path string) error {
	if strings.EqualFold(filepath.Ext(path), ".lir") {
		_, err := command.ReadProgram(c, path)
		return err
	}
	report, err := aoti.Inspect(path)
	if err != nil {
		return err
	}
	for _, m := range report.Models {
		if m.Refused != "" {
			return errors.New(m.Refused)
		}
		if len(m.Missing) > 0 {
			return fmt.Errorf("this host lacks %s", strings.Join(m.Missing, ", "))
		}
	}
	return nil
}
