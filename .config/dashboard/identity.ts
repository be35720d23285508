import { inAnHour, JOB, rate, type Row } from './panel.ts'

export const IDENTITY: Row = {
  title: 'Identity',
  panels: [
    {
      title: 'Tokens that were issued',
      description: 'Per second, by the grant.',
      unit: 'ops',
      queries: { '{{grant}}': rate(`postern_tokens_total{${JOB}, result="issued"}`, 'grant') },
    },
    {
      title: 'Token requests that were refused',
      description: 'Per second. Many invalid_grant by password: somebody is guessing.',
      unit: 'ops',
      queries: {
        '{{grant}}: {{result}}': `${rate(`postern_tokens_total{${JOB}, result!="issued"}`, 'grant, result')} > 0`,
      },
    },
    {
      title: 'Codes and refresh tokens used twice',
      description: 'Within an hour. A stolen token, or a client that repeats itself.',
      unit: 'short',
      queries: { '{{kind}}': inAnHour(`postern_token_replays_total{${JOB}}`, 'kind') },
    },
    {
      title: 'Delayed logins',
      description: 'Accounts, and accounts from one network, whose next login is delayed after failures.',
      unit: 'short',
      queries: { '{{instance}}': `postern_lockouts{${JOB}}` },
    },
    {
      title: 'Passwords that wait to be checked',
      description: 'The queue of password hashes. While it is long, all logins are slow.',
      unit: 'short',
      queries: { '{{instance}}': `postern_hash_queue{${JOB}}` },
    },
    {
      title: 'Tokens that were known already',
      description: 'The share of calls whose token did not have to be verified again.',
      unit: 'percentunit',
      queries: {
        'known tokens': `${rate(`postern_token_cache_total{${JOB}, outcome="hit"}`)} / ${rate(`postern_token_cache_total{${JOB}}`)}`,
      },
    },
    {
      title: 'Age of the signing keys',
      description: 'Since the key was made that signs now.',
      unit: 'dtdurations',
      queries: {
        '{{algorithm}}': `time() - min by (algorithm) (postern_signing_key_created_timestamp_seconds{${JOB}})`,
      },
    },
    {
      title: 'Time to the next signing key',
      description: 'Below 0: the next key is missing.',
      unit: 'dtdurations',
      queries: {
        '{{algorithm}}': `min by (algorithm) (postern_signing_key_next_rotation_timestamp_seconds{${JOB}}) - time()`,
      },
    },
  ],
}
