import { inAnHour, JOB, quantile, rate, type Row } from './panel.ts'

export const OPERATIONS: Row = {
  title: 'Operations',
  panels: [
    {
      title: 'Store answers',
      description: 'Whether the last call to the store was answered.',
      unit: 'bool_yes_no',
      now: true,
      queries: { '{{instance}}': `postern_store_up{${JOB}}` },
    },
    {
      title: 'Last reload succeeded',
      description: 'No: the configuration on disk is refused. The one before is in force.',
      unit: 'bool_yes_no',
      now: true,
      queries: { '{{instance}}': `postern_configuration_last_reload_successful{${JOB}}` },
    },
    {
      title: 'Age of the configuration',
      description: 'Since the configuration in force was read.',
      unit: 'dtdurations',
      now: true,
      queries: { '{{instance}}': `time() - postern_configuration_loaded_timestamp_seconds{${JOB}}` },
    },
    {
      title: 'In maintenance',
      description: 'Whether a switch of this kind is in force.',
      unit: 'bool_yes_no',
      now: true,
      queries: {
        '{{scope}}': `max by (scope) (postern_maintenance_on_since_timestamp_seconds{${JOB}} > bool 0)`,
      },
    },
    {
      title: 'Certificates end in',
      description: 'New files are used by themselves, within a minute.',
      unit: 'dtdurations',
      now: true,
      queries: {
        '{{name}}': `min by (name) (postern_certificate_expiry_timestamp_seconds{${JOB}}) - time()`,
      },
    },
    {
      title: 'Overloaded',
      description:
        'Whether a part of all new calls is answered 503, so that the others are answered in time.',
      unit: 'bool_yes_no',
      now: true,
      queries: { '{{instance}}': `postern_shedding{${JOB}}` },
    },
    {
      title: 'Time of the store (99 %)',
      description: 'How long one of 100 calls to the store takes at least.',
      unit: 's',
      queries: { '{{verb}}': quantile(0.99, 'postern_store_verb_duration_seconds', JOB, 'verb') },
    },
    {
      title: 'Failures of the store',
      description: 'Within an hour.',
      unit: 'short',
      queries: { '{{verb}}': inAnHour(`postern_store_errors_total{${JOB}}`, 'verb') },
    },
    {
      title: 'Age of the change feed',
      description: 'How old is what the process knows of the changes of others. It should be under a second.',
      unit: 's',
      queries: { '{{instance}}': `postern_feed_age_seconds{${JOB}}` },
    },
    {
      title: 'Processes',
      description: 'Workers by what they do.',
      unit: 'short',
      queries: { '{{state}}': `sum by (state) (postern_workers{${JOB}})` },
    },
    {
      title: 'Workers that died',
      description: 'Within an hour. The calls that they were answering were lost.',
      unit: 'short',
      queries: { '{{instance}}': inAnHour(`postern_worker_deaths_total{${JOB}}`, 'instance') },
    },
    {
      title: 'Lines of the log that were lost',
      description: 'Within an hour.',
      unit: 'short',
      queries: { '{{instance}}': inAnHour(`postern_log_dropped_total{${JOB}}`, 'instance') },
    },
  ],
}

export const AUDIT: Row = {
  title: 'Audit',
  panels: [
    {
      title: 'Trail can be written',
      description: 'No: whatever would change something is refused.',
      unit: 'bool_yes_no',
      now: true,
      queries: { '{{instance}}': `postern_audit_writable{${JOB}}` },
    },
    {
      title: 'Signed since',
      description: 'Since the trail was last signed. It grows while nothing happens.',
      unit: 'dtdurations',
      now: true,
      queries: { '{{instance}}': `time() - postern_audit_checkpoint_timestamp_seconds{${JOB}}` },
    },
    {
      title: 'Anchors are behind by',
      description: 'What is signed and has no anchor yet. About a minute at most.',
      unit: 'dtdurations',
      now: true,
      queries: {
        '{{instance}}': `clamp_min(postern_audit_checkpoint_timestamp_seconds{${JOB}} - postern_audit_anchored_timestamp_seconds{${JOB}}, 0)`,
      },
    },
    {
      title: 'Changes under way',
      description: 'Announced in the trail, and without an outcome yet.',
      unit: 'short',
      now: true,
      queries: { '{{instance}}': `postern_audit_open_intents{${JOB}}` },
    },
    {
      title: 'Changes without an outcome',
      description: 'Of processes that have ended, until somebody has run postern audit open.',
      unit: 'short',
      now: true,
      queries: { '{{instance}}': `postern_audit_abandoned_intents{${JOB}}` },
    },
    {
      title: 'Records',
      description: 'Per second, by what they are about.',
      unit: 'ops',
      queries: { '{{group}}': rate(`postern_audit_records_total{${JOB}}`, 'group') },
    },
    {
      title: 'Time until records are on the disk',
      description: 'A change waits for this.',
      unit: 's',
      queries: Object.fromEntries(
        [0.5, 0.99].map((share) => [
          `${share * 100} % are faster than`,
          quantile(share, 'postern_audit_sync_duration_seconds', JOB),
        ]),
      ),
    },
    {
      title: 'Refused or lost for want of a record',
      description: 'Within an hour: changes that were refused, records that were lost, anchors that failed.',
      unit: 'short',
      queries: {
        'changes refused': inAnHour(`postern_audit_refused_total{${JOB}}`),
        'records lost': inAnHour(`postern_audit_dropped_total{${JOB}}`),
        'anchors failed': inAnHour(`postern_audit_anchor_failures_total{${JOB}}`),
      },
    },
  ],
}

/** What its processes take of the machine. Open files and garbage collection are those of the process with the metrics. */
export const PROCESS: Row = {
  title: 'Process',
  panels: [
    {
      title: 'Processor',
      description: 'Cores that each process uses.',
      unit: 'percentunit',
      queries: {
        '{{instance}}, {{process}}': `rate(postern_process_cpu_seconds_total{${JOB}}[$__rate_interval])`,
      },
    },
    {
      title: 'Memory',
      description: 'Memory of each process, of all together, and what they may take.',
      unit: 'bytes',
      queries: {
        '{{instance}}, {{process}}': `postern_process_memory_bytes{${JOB}}`,
        '{{instance}}, all': `sum by (instance) (postern_process_memory_bytes{${JOB}})`,
        '{{instance}}, limit': `postern_memory_limit_bytes{${JOB}}`,
      },
    },
    {
      title: 'Delay of the event loop',
      description:
        'The longest of the last 15 to 30 s. If it stays above 200 ms, the processor is the limit.',
      unit: 's',
      queries: { '{{instance}}, {{process}}': `postern_process_event_loop_delay_seconds{${JOB}}` },
    },
    {
      title: 'Open files',
      description: 'Files and sockets, beside what the system allows.',
      unit: 'short',
      queries: { '{{instance}}': `process_open_fds{${JOB}}` },
    },
    {
      title: 'Garbage collection',
      description: 'The share of time that goes into it.',
      unit: 'percentunit',
      queries: {
        '{{instance}}': `sum by (instance) (rate(nodejs_gc_duration_seconds_sum{${JOB}}[$__rate_interval]))`,
      },
    },
    {
      title: 'Running since',
      description: 'The time since the process was started.',
      unit: 'dtdurations',
      queries: { '{{instance}}': `time() - process_start_time_seconds{${JOB}}` },
    },
  ],
}
