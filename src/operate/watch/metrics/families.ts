/** The published metrics. `metrics.md` describes them for people; a test keeps both the same. */

interface Family {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

/** A metric that is counted. Each process sends what it has counted, which is added up. */
export interface CountedFamily extends Family {
  readonly type: 'counter' | 'histogram'
  /** Only series that were counted are shown, because most combinations of labels never occur. */
  readonly sparse?: boolean
}

/** How the values that several processes read become one. */
export type Merge = 'sum' | 'max' | 'min'

/** A present state. Each process reads it (GaugeSource). */
export interface GaugeFamily extends Family {
  readonly type: 'gauge'
  /** For all series, or by the value of the last label. */
  readonly merge: Merge | Readonly<Record<string, Merge>>
}

export type MetricFamily = CountedFamily | GaugeFamily

const counter = (name: string, help: string, labels: readonly string[] = []): CountedFamily => ({
  name,
  type: 'counter',
  help,
  labels,
})
const sparse = (family: CountedFamily): CountedFamily => ({ ...family, sparse: true })
const histogram = (name: string, help: string, labels: readonly string[] = []): CountedFamily => ({
  name,
  type: 'histogram',
  help,
  labels,
})
const gauge = (
  name: string,
  help: string,
  labels: readonly string[],
  merge: GaugeFamily['merge'],
): GaugeFamily => ({ name, type: 'gauge', help, labels, merge })

/** Upper bounds of histograms in seconds, from half a millisecond to half a minute. */
export const BUCKETS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

const REQUESTS = {
  requests: sparse(
    counter('postern_requests_total', 'Requests answered.', ['door', 'area', 'method', 'status']),
  ),
  decisions: sparse(
    counter('postern_decisions_total', 'Decisions by the fault that ended them, or allowed.', [
      'reason',
      'area',
      'action',
    ]),
  ),
  wouldRefuse: sparse(
    counter(
      'postern_would_refuse_total',
      'Calls let through by a report-only area, by what would refuse them.',
      ['reason', 'area', 'action'],
    ),
  ),
  reportOnlyAreas: gauge('postern_report_only_areas', 'Areas in which nothing is refused.', [], 'max'),
  clientDecisions: counter(
    'postern_client_decisions_total',
    'Decisions about calls with an access token, by the client that it was issued to.',
    ['client', 'class'],
  ),
  actionCalls: counter('postern_action_calls_total', 'Calls of an action that were answered.', [
    'area',
    'action',
  ]),
  actionSeconds: counter('postern_action_seconds_total', 'Sum of the times of these calls, in seconds.', [
    'area',
    'action',
  ]),
  actionErrors: counter(
    'postern_action_errors_total',
    'Calls of an action that were answered with a status from 500 on.',
    ['area', 'action'],
  ),
  requestDuration: histogram(
    'postern_request_duration_seconds',
    'Time from the head of a request to its answer.',
    ['door', 'area', 'class'],
  ),
  gatewayDuration: histogram(
    'postern_gateway_duration_seconds',
    'The part of the time that was spent in Postern itself, waiting for a backend not counted.',
    ['door', 'area'],
  ),
  callsInFlight: gauge('postern_calls_in_flight', 'Calls that are being answered now.', [], 'sum'),
  hashQueue: gauge(
    'postern_hash_queue',
    'Checks of passwords and secrets that wait for their turn.',
    [],
    'sum',
  ),
  signatureQueue: gauge(
    'postern_signature_queue',
    'Tokens that were not seen before and wait for the check of their signature.',
    [],
    'sum',
  ),
  shedding: gauge('postern_shedding', '1 while calls are refused because of overload.', [], 'max'),
} as const satisfies Record<string, MetricFamily>

const UPSTREAMS = {
  upstreamDuration: histogram('postern_upstream_duration_seconds', 'Time spent waiting for a backend.', [
    'backend',
  ]),
  backendCalls: sparse(
    counter('postern_backend_calls_total', 'Calls to backends by outcome.', ['backend', 'outcome']),
  ),
  backendCallsInFlight: gauge(
    'postern_backend_calls_in_flight',
    'Calls that a backend is answering now.',
    ['backend'],
    'sum',
  ),
  upstreamConnections: gauge(
    'postern_upstream_connections',
    'Connections to an upstream: in use, or open and unused.',
    ['backend', 'state'],
    'sum',
  ),
  upstreamQueue: gauge(
    'postern_upstream_queue',
    'Calls that wait for a connection to an upstream.',
    ['backend'],
    'sum',
  ),
  // The view of the process that sees most of them ejected.
  upstreamTargets: gauge(
    'postern_upstream_targets',
    'Targets of an upstream that get calls, and those that get none because they failed.',
    ['backend', 'state'],
    { healthy: 'min', ejected: 'max' },
  ),
  upstreamRetries: counter('postern_upstream_retries_total', 'Calls to an upstream that were repeated.', [
    'backend',
  ]),
  upstreamEjections: counter(
    'postern_upstream_ejections_total',
    'How often a target of an upstream was taken out because it failed.',
    ['backend'],
  ),
  tunnelsOpen: gauge('postern_tunnels_open', 'Websockets that are open now.', ['backend'], 'sum'),
  tunnelsEnded: sparse(
    counter('postern_tunnels_ended_total', 'Websockets that have ended, by what ended them.', [
      'backend',
      'end',
    ]),
  ),
} as const satisfies Record<string, MetricFamily>

const IDENTITY = {
  tokens: counter('postern_tokens_total', 'Token requests by grant and result.', ['grant', 'result']),
  tokenCache: counter('postern_token_cache_total', 'Look-ups of verified tokens in the cache.', ['outcome']),
  tokenReplays: counter(
    'postern_token_replays_total',
    'Codes and refresh tokens that were used again, and whose tokens were ended for it.',
    ['kind'],
  ),
  clientAuthentications: counter(
    'postern_client_authentications_total',
    'Clients that authenticated, or did not, by how they tried.',
    ['method', 'result'],
  ),
  logins: counter('postern_logins_total', 'Tries to sign in on the pages.', ['way', 'result']),
  logoutNotices: counter('postern_logout_notices_total', 'Tries to tell a client that a login has ended.', [
    'result',
  ]),
  lockouts: gauge(
    'postern_lockouts',
    'Accounts, and pairs of an account and a network, whose failures delay the next attempt to log in.',
    [],
    'max',
  ),
  peopleThreadReplacements: counter(
    'postern_people_thread_replacements_total',
    'How often the thread of the module that finds people was replaced, because it did not answer or had ended.',
  ),
  signingKeyCreated: gauge(
    'postern_signing_key_created_timestamp_seconds',
    'When the key that signs now was created.',
    ['algorithm'],
    'min',
  ),
  signingKeyNextRotation: gauge(
    'postern_signing_key_next_rotation_timestamp_seconds',
    'When another key is to sign.',
    ['algorithm'],
    'min',
  ),
} as const satisfies Record<string, MetricFamily>

const OPERATIONS = {
  storeUp: gauge(
    'postern_store_up',
    '1 if every process had an answer to its last call to the store, else 0.',
    [],
    'min',
  ),
  storeVerbDuration: histogram('postern_store_verb_duration_seconds', 'Time of the calls to the store.', [
    'verb',
  ]),
  storeErrors: counter('postern_store_errors_total', 'Calls to the store that failed.', ['verb']),
  feedAge: gauge(
    'postern_feed_age_seconds',
    'Time since the change feed was last read, by the process that read it longest ago.',
    [],
    'max',
  ),
  clockOffset: gauge(
    'postern_clock_offset_seconds',
    'By how much the clock of a store that several nodes share is ahead of this machine’s. Times are those of the store.',
    [],
    'max',
  ),
  storeNodes: gauge(
    'postern_store_nodes',
    'Nodes that a store counts which several share. Fewer than are scraped: its halves know nothing of each other.',
    [],
    'max',
  ),
  storeConfigurations: gauge(
    'postern_store_configurations',
    'Different configurations of the nodes that a store counts. Over 1 but for the time of a change: they serve different things.',
    [],
    'max',
  ),
  nodeConfiguration: gauge(
    'postern_node_configuration',
    'Always 1. A digest of the configuration in force, without what each node has of its own.',
    ['digest'],
    'max',
  ),
  certificateExpiry: gauge(
    'postern_certificate_expiry_timestamp_seconds',
    'When a certificate expires that this service shows to clients or to an upstream.',
    ['name'],
    'min',
  ),
  maintenanceSince: gauge(
    'postern_maintenance_on_since_timestamp_seconds',
    'Since when something of this kind is closed; 0 if nothing is.',
    ['scope'],
    'max',
  ),
  configurationLoaded: gauge(
    'postern_configuration_loaded_timestamp_seconds',
    'When the configuration in force was read.',
    [],
    'max',
  ),
  configurationReloaded: gauge(
    'postern_configuration_last_reload_successful',
    '1 if the configuration that was read last is in force, 0 if it was refused.',
    [],
    'min',
  ),
  configurationRefused: gauge(
    'postern_configuration_refused',
    '1 for why the configuration that was read last is refused: `file` (a mistake in it), `store`, `trail`, `files` (they change), `unknown`.',
    ['cause'],
    'max',
  ),
  workers: gauge('postern_workers', 'Processes, by what they do.', ['state'], 'sum'),
  processMemory: gauge(
    'postern_process_memory_bytes',
    'Resident memory of each process, in bytes. Pages that processes share count in each of them.',
    ['process'],
    'max',
  ),
  processCpu: counter('postern_process_cpu_seconds_total', 'Processor time of each process, in seconds.', [
    'process',
  ]),
  processDelay: gauge(
    'postern_process_event_loop_delay_seconds',
    'The longest time of the last 15 to 30 s for which the event loop of a process kept others waiting.',
    ['process'],
    'max',
  ),
  memoryLimit: gauge(
    'postern_memory_limit_bytes',
    'Memory that all processes may take together: the limit of the container, or the memory of the machine.',
    [],
    'min',
  ),
  dataSize: gauge(
    'postern_data_bytes',
    'Size of all files in the data folder, measured each minute.',
    [],
    'max',
  ),
  dataFree: gauge(
    'postern_data_free_bytes',
    'Space that is left for this service on the disk of the data folder, measured each minute.',
    [],
    'min',
  ),
  workerDeaths: counter(
    'postern_worker_deaths_total',
    'Processes that ended though they should have served.',
  ),
  connectionsRefused: counter(
    'postern_connections_refused_total',
    'Connections that were closed at once, because too few file descriptors were left.',
  ),
  logDropped: counter('postern_log_dropped_total', 'Lines of the log that could not be kept.'),
  logWritable: gauge(
    'postern_log_writable',
    '0 while the log cannot be written, its reader has gone, or lines are dropped; else 1.',
    [],
    'min',
  ),
} as const satisfies Record<string, MetricFamily>

const AUDIT = {
  auditWritable: gauge(
    'postern_audit_writable',
    '0 while records of the audit trail cannot be written or signed, or were not in time; else 1.',
    [],
    'min',
  ),
  auditOpenIntents: gauge(
    'postern_audit_open_intents',
    'Calls that a living process has announced in the audit trail, without an outcome so far.',
    [],
    'sum',
  ),
  auditAbandonedIntents: gauge(
    'postern_audit_abandoned_intents',
    'Intents that ended processes have left without an outcome, until somebody has asked for them.',
    [],
    'max',
  ),
  auditCheckpoint: gauge(
    'postern_audit_checkpoint_timestamp_seconds',
    'When the audit trail was signed last.',
    [],
    'max',
  ),
  auditAnchored: gauge(
    'postern_audit_anchored_timestamp_seconds',
    'When an anchor of the audit trail was written last; 0 if none was since the start.',
    [],
    'min',
  ),
  auditSyncDuration: histogram(
    'postern_audit_sync_duration_seconds',
    'Time until a group of records of the audit trail was on the disk.',
  ),
  auditRecords: counter('postern_audit_records_total', 'Records of the audit trail.', ['group']),
  auditRefused: counter(
    'postern_audit_refused_total',
    'Calls and acts that were refused because they could not be recorded first.',
  ),
  auditDropped: counter(
    'postern_audit_dropped_total',
    'Records of the audit trail that were lost, because too many waited.',
  ),
  auditAnchorFailures: counter(
    'postern_audit_anchor_failures_total',
    'Anchors of the audit trail that could not be written.',
  ),
  auditFilesDisplaced: counter(
    'postern_audit_files_displaced_total',
    'Files of the audit trail that somebody removed, moved or changed while they were written.',
  ),
} as const satisfies Record<string, MetricFamily>

export const FAMILIES = {
  ...REQUESTS,
  ...UPSTREAMS,
  ...IDENTITY,
  ...OPERATIONS,
  ...AUDIT,
  buildInfo: gauge(
    'postern_build_info',
    'Always 1; its labels tell the version.',
    ['version', 'node'],
    'max',
  ),
} as const satisfies Record<string, MetricFamily>

/** A counter of identity that an extension adds. Its page documents it. */
export interface AddedCounter {
  /** Its name in `Recorder.count`. */
  readonly of: string
  readonly name: string
  readonly help: string
  /** All values of its labels, of which there are two at most. */
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** The name of the family that it stands behind. */
  readonly after: string
}

export const addedFamily = ({ name, help, labels }: AddedCounter): CountedFamily =>
  counter(name, help, Object.keys(labels))

/** All families, in the order in which they are shown. */
export const familiesWith = (added: readonly AddedCounter[]): readonly MetricFamily[] =>
  added.reduce<readonly MetricFamily[]>((all, one) => {
    const place = all.findIndex(({ name }) => name === one.after)
    if (place === -1) throw new TypeError(`there is no "${one.after}" behind which "${one.name}" could stand`)
    return all.toSpliced(place + 1, 0, addedFamily(one))
  }, Object.values(FAMILIES))
