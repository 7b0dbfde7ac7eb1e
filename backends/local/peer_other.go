//go:build !linux

package local

import "net"

// sameUser trusts the mode of the socket, and of the directory that it is in.
func sameUser(net.Conn) bool { return true }
