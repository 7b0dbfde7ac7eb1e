package atomd

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// newServer serves an engine in memory over TLS, and returns a client of the Azure SDK for Go.
func newServer(t *testing.T, change func(*Options)) (*broker.Engine, *httptest.Server, *admin.Client) {
	t.Helper()
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		t.Fatal(err)
	}
	e, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	o := Options{Engine: e}
	if change != nil {
		change(&o)
	}
	srv := httptest.NewTLSServer(New(o))
	t.Cleanup(srv.Close)
	client, err := admin.NewClientFromConnectionString("Endpoint=sb://"+strings.TrimPrefix(srv.URL, "https://")+
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
		&admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: srv.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	return e, srv, client
}

func TestAzureQueue(t *testing.T) {
	_, _, client := newServer(t, nil)
	ctx := context.Background()
	if _, err := client.CreateQueue(ctx, "team/orders", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		LockDuration: to.Ptr("PT45S"), DefaultMessageTimeToLive: to.Ptr("PT6H"), UserMetadata: to.Ptr("<mine & yours>"),
	}}); err != nil {
		t.Fatal(err)
	}
	got, err := client.GetQueue(ctx, "team/orders", nil)
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	if *got.LockDuration != "PT45S" || *got.DefaultMessageTimeToLive != "PT6H" || *got.UserMetadata != "<mine & yours>" || *got.MaxDeliveryCount != 10 {
		t.Errorf("the queue came back as %+v", got.QueueProperties)
	}
	if missing, err := client.GetQueue(ctx, "none", nil); err != nil || missing != nil {
		t.Errorf("a queue that is missing came as %v, %v", missing, err)
	}
	if _, err := client.DeleteQueue(ctx, "team/orders", nil); err != nil {
		t.Error(err)
	}
}
