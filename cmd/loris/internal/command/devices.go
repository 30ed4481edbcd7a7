package command

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	_ "github.com/loris-ml/loris/internal/ref" // registers the device
)

// DeviceFlag adds --device.
func DeviceFlag(c *cobra.Command, device *string) {
	c.Flags().StringVar(device, "device", "cpu", "device to compute on, such as cpu or ref")
	// It fails only for a flag that does not exist.
	_ = c.RegisterFlagCompletionFunc("device", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, b := range backend.All() {
			names = append(names, b.DeviceType().String())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// ParseDevice returns a device that can be used and its backend.
func ParseDevice(name string) (ir.Device, backend.Backend, error) {
	d, err := ir.ParseDevice(name)
	if err != nil {
		return d, nil, err
	}
	b, err := backend.For(d)
	return d, b, err
}

// PrintJSON writes v indented.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
