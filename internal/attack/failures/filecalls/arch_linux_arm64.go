package filecalls

import "golang.org/x/sys/unix"

const architecture, newfstatat = unix.AUDIT_ARCH_AARCH64, unix.SYS_FSTATAT
