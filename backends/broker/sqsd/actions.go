package sqsd

// scope says which queue an action is about.
type scope uint8

const (
	queueScope   scope = iota // the queue of QueueUrl, or of the request's path
	serviceScope              // none: it may not be posted to a queue
	anyScope                  // the one of QueueName, wherever it is posted to
)

// action is one of the API.
type action struct {
	run     func(*call) error
	right   Right
	op      FaultOp
	scope   scope
	silent  bool // it answers with nothing
	changes bool // it changes something
}

// actions are all 23.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Operations.html
var actions = map[string]*action{
	"CreateQueue":                {run: (*call).createQueue, right: Manage, op: OpManage, scope: serviceScope, changes: true},
	"DeleteQueue":                {run: (*call).deleteQueue, right: Manage, op: OpManage, silent: true, changes: true},
	"ListQueues":                 {run: (*call).listQueues, right: Listen, op: OpManage, scope: serviceScope},
	"GetQueueUrl":                {run: (*call).getQueueURL, right: anyRight, op: OpManage, scope: anyScope},
	"GetQueueAttributes":         {run: (*call).getQueueAttributes, right: Listen, op: OpManage},
	"SetQueueAttributes":         {run: (*call).setQueueAttributes, right: Manage, op: OpManage, silent: true, changes: true},
	"PurgeQueue":                 {run: (*call).purgeQueue, right: Manage, op: OpManage, silent: true, changes: true},
	"ListDeadLetterSourceQueues": {run: (*call).listSources, right: Listen, op: OpManage},

	"SendMessage":                  {run: (*call).sendMessage, right: Send, op: OpSend, changes: true},
	"SendMessageBatch":             {run: (*call).sendMessageBatch, right: Send, op: OpSend, changes: true},
	"ReceiveMessage":               {run: (*call).receiveMessage, right: Listen, op: OpReceive, changes: true},
	"DeleteMessage":                {run: (*call).deleteMessage, right: Listen, op: OpSettle, silent: true, changes: true},
	"DeleteMessageBatch":           {run: (*call).deleteMessageBatch, right: Listen, op: OpSettle, changes: true},
	"ChangeMessageVisibility":      {run: (*call).changeVisibility, right: Listen, op: OpSettle, silent: true, changes: true},
	"ChangeMessageVisibilityBatch": {run: (*call).changeVisibilityBatch, right: Listen, op: OpSettle, changes: true},

	"TagQueue":         {run: (*call).tagQueue, right: Manage, op: OpManage, silent: true, changes: true},
	"UntagQueue":       {run: (*call).untagQueue, right: Manage, op: OpManage, silent: true, changes: true},
	"ListQueueTags":    {run: (*call).listQueueTags, right: Listen, op: OpManage},
	"AddPermission":    {run: (*call).addPermission, right: Manage, op: OpManage, silent: true, changes: true},
	"RemovePermission": {run: (*call).removePermission, right: Manage, op: OpManage, silent: true, changes: true},

	"StartMessageMoveTask":  {run: (*call).startMoveTask, right: Manage, op: OpManage, scope: serviceScope, changes: true},
	"CancelMessageMoveTask": {run: (*call).cancelMoveTask, right: Manage, op: OpManage, scope: serviceScope, changes: true},
	"ListMessageMoveTasks":  {run: (*call).listMoveTasks, right: Manage, op: OpManage, scope: serviceScope},
}
