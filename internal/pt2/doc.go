// Package pt2 reads packages of compiled PyTorch models: ".pt2" archives, folders
// extracted from them, and bare shared libraries; for package torchexport also archives that
// torch.export.save and torch.save wrote. It executes nothing and writes
// nothing to disk. Packages are taken for hostile: whatever a file says of itself
// is checked before it is believed, memory is bounded, and what is wrong is a
// [*FormatError] that names the member.
package pt2
