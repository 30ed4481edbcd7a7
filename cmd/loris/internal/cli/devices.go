package cli

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/internal/ir"
)

// deviceInfo is what `devices` tells of one device, or of a backend whose
// devices cannot be used.
type deviceInfo struct {
	Device      string `json:"device"`
	Backend     string `json:"backend"` // its version
	MemoryInUse int64  `json:"memory_in_use"`
	State       string `json:"state,omitempty"` // what is special about it
	Error       string `json:"error,omitempty"`
}

func newDevices() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "devices",
		Short: "List the devices",
		Long: `List the devices. GPUs are looked for by builds with -tags cuda; where there is none,
the line of cuda says why.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list := devices()
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), list)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "DEVICE\tBACKEND\tSTATE")
			for _, d := range list {
				fmt.Fprintf(tw, "%s\t%s\t%s\n", d.Device, d.Backend, cmp.Or(d.Error, d.State, "ready"))
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// devices lists the devices, with a line of CUDA in every build: the GPUs, or why
// there are none.
func devices() []deviceInfo {
	list := []deviceInfo{}
	for _, b := range backend.All() {
		n, err := b.NumDevices()
		if err != nil {
			list = append(list, deviceInfo{Device: b.DeviceType().String(), Backend: b.Version(), Error: err.Error()})
			continue
		}
		for i := range n {
			d := ir.Device{Type: b.DeviceType(), Index: uint8(i)}
			list = append(list, deviceInfo{Device: d.String(), Backend: b.Version(), MemoryInUse: b.BytesInUse(d)})
		}
	}
	gpus, err := cuda.Devices()
	if errors.Is(err, cuda.ErrNotBuilt) {
		return append(list, deviceInfo{Device: cuda.DeviceType.String(), Backend: "none", Error: err.Error()})
	}
	for _, g := range gpus {
		name := ir.Device{Type: cuda.DeviceType, Index: uint8(g.Index)}.String()
		for i := range list {
			if list[i].Device == name {
				list[i].State = fmt.Sprintf("%s, %s, %d multiprocessors, %s, driver for CUDA %s",
					g.Name, g.Arch, g.SMs, humanize.IBytes(uint64(g.Memory)), g.Driver)
			}
		}
	}
	return list
}

// versionInfo is what `version` tells.
type versionInfo struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision,omitempty"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Backends map[string]string `json:"backends"` // versions by device type
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of loris, Go and the backends",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := version()
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), v)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(tw, "loris\t%s\n", v.Version)
			if v.Revision != "" {
				fmt.Fprintf(tw, "revision\t%s\n", v.Revision)
			}
			fmt.Fprintf(tw, "go\t%s %s\n", v.Go, v.Platform)
			for _, b := range backend.All() {
				fmt.Fprintf(tw, "backend %v\t%s\n", b.DeviceType(), b.Version())
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// version is what the build says of itself.
func version() versionInfo {
	v := versionInfo{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Backends: map[string]string{}}
	v.Version, v.Revision = command.Version()
	for _, b := range backend.All() {
		v.Backends[b.DeviceType().String()] = b.Version()
	}
	return v
}
