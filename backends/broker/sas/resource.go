package sas

import (
	"net/netip"
	"net/url"
	"strings"
)

// Resource normalises an audience to the path that [Claim] compares: in lower case, without
// scheme, host, port, query, doubled slashes and a last segment $management. The namespace is "".
//
// Some clients sign an audience without a scheme. It begins with the host if its first segment
// looks like one (localhost, an IP address, something with a dot or a port), else with the entity.
func Resource(audience string) string {
	audience, _, _ = strings.Cut(audience, "?")
	if decoded, err := url.PathUnescape(audience); err == nil {
		audience = decoded
	}
	if _, rest, ok := strings.Cut(audience, "://"); ok {
		_, path, _ := strings.Cut(rest, "/")
		return normalPath(path)
	}
	first, rest, _ := strings.Cut(audience, "/")
	if looksLikeHost(first) {
		audience = rest
	}
	return normalPath(audience)
}

func looksLikeHost(s string) bool {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return true
	}
	return strings.EqualFold(s, "localhost") || strings.ContainsAny(s, ".:")
}

// normalPath lowers the case, and drops empty segments and a last one $management.
func normalPath(path string) string {
	path = strings.Trim(strings.ToLower(path), "/")
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if path == "$management" {
		return ""
	}
	return strings.TrimSuffix(path, "/$management")
}

// covers reports whether path is resource or lies below it. Both are normal.
func covers(resource, path string) bool {
	return resource == "" || path == resource ||
		strings.HasPrefix(path, resource) && path[len(resource)] == '/'
}
