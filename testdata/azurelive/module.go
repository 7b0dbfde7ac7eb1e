package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The module whose tests run, and the one of which it takes the credential of its tests.
const (
	sdkPath      = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	sdkVersion   = "v1.11.0"
	internalPath = "github.com/Azure/azure-sdk-for-go/sdk/internal"
)

// credential takes the place of the file of the same name in the internal module's test/credential.
const credential = `// Package credential makes the credential of tests.
package credential

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

type NewOptions struct{}

// New returns a static token.
func New(*NewOptions) (azcore.TokenCredential, error) { return &Fake{}, nil }

type Fake struct{}

func (Fake) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{ExpiresOn: time.Now().Add(time.Hour).UTC(), Token: "static"}, nil
}
`

// scratchModule makes a copy of the SDK that can be built and tested, and returns its folder.
func scratchModule(ctx context.Context, work string) (string, error) {
	sdk, internal := filepath.Join(work, "azservicebus"), filepath.Join(work, "internal")
	empty := filepath.Join(work, "empty") // a module of its own, so that nothing is asked of this one's go.mod
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(empty, "go.mod"), []byte("module empty\n"), 0o600); err != nil {
		return "", err
	}
	if err := download(ctx, empty, sdkPath+"@"+sdkVersion, sdk); err != nil {
		return "", err
	}
	// The version that the SDK was published with.
	out, err := run(ctx, sdk, "go", "list", "-m", "-f", "{{.Version}}", internalPath)
	if err != nil {
		return "", err
	}
	if err := download(ctx, empty, internalPath+"@"+string(out[:len(out)-1]), internal); err != nil {
		return "", err
	}
	own := filepath.Join(internal, "test", "credential")
	if err := os.RemoveAll(own); err != nil {
		return "", err
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(own, "credential.go"), []byte(credential), 0o600); err != nil {
		return "", err
	}
	_, err = run(ctx, sdk, "go", "mod", "edit", "-replace", internalPath+"="+internal)
	return sdk, err
}

// download puts a copy of a module into a folder.
func download(ctx context.Context, from, module, to string) error {
	out, err := run(ctx, from, "go", "mod", "download", "-json", module)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(m.Dir)) // whose files may be written, other than those of the module cache
}
