/** The running service: its processes are replaced, and what it doubts about its store is accepted. */
import {
  type AuditedChange,
  type Operator,
  recordGiving,
} from '../../base/contracts/records/audited-change.ts'
import { DOUBTED, type Doubted } from '../../base/contracts/records/store.ts'
import type { ServiceContext } from '../operation/context.ts'
import {
  commandLine,
  count,
  members,
  ok,
  type AdminOperation,
  problemsSchema,
  conflict,
  reject,
  WHO,
} from '../operation/operation.ts'
import { countOf } from '../operation/terminal.ts'
import { UsageError } from '../operation/verb.ts'

export const RESTART: AdminOperation = {
  method: 'POST',
  path: '/restart',
  operationId: 'restart',
  needs: 'operate',
  summary: 'Replace every worker process, one after the other, without losing a call',
  body: members(WHO),
  bodyOptional: true,
  answers: {
    200: [
      'Replaced',
      members({ outcome: { const: 'restarted' }, workers: count('How many.') }, ['outcome', 'workers']),
    ],
    409: ['Not possible', problemsSchema],
  },
  handle: async (service, { operator }) => {
    const outcome = await service.restart(operator)
    return outcome.outcome === 'refused' ? conflict('not restarted', outcome.problems) : ok(outcome)
  },
  commands: [
    commandLine({
      words: ['restart'],
      summary: 'Replace the worker processes of a running service, one by one',
      arguments: [],
      options: {},
      examples: [{ line: 'postern restart', does: 'replace the processes; no call is lost' }],
      text: ({ workers }: { readonly workers: number }) => `${countOf(workers, 'worker')} replaced\n`,
    }),
  ],
}

/** Resolves with false if this process does not doubt it. Rejects with Fault `identity_unavailable`. */
async function accept(
  { doubts, audit, recorder }: ServiceContext,
  what: Doubted,
  operator: Operator,
): Promise<boolean> {
  if (doubts[what] === undefined) return false
  const change: AuditedChange = { event: 'store.accepted', on: { kind: 'store' }, change: { what } }
  const accepted = await recordGiving(audit, operator, change, () => doubts.accept(what))
  recorder.note('info', 'store_accepted', { what, ...operator })
  return accepted
}

/** Accepts the store after a clock that jumped, and after a backup (C11.7.1). */
export const ACCEPT_STORE: AdminOperation = {
  method: 'POST',
  path: '/store/accept',
  operationId: 'acceptStore',
  needs: 'operate',
  summary:
    'What every process doubts about the store is right: the clock of a shared one, which has jumped, or its contents, which are older than what this node has seen',
  body: members({ what: { enum: [...DOUBTED], description: 'What is right.' }, ...WHO }, ['what']),
  answers: {
    200: [
      'In this process; everywhere within a second',
      members({ outcome: { const: 'accepted' }, what: { enum: [...DOUBTED] } }, ['outcome', 'what']),
    ],
    409: ['It is not doubted here: nothing has changed', problemsSchema],
  },
  handle: async (service, { body, operator }) => {
    const what = DOUBTED.find((each) => each === body['what'])
    if (what === undefined) return reject([`what  expected ${DOUBTED.join(' or ')}`])
    return (await accept(service, what, operator))
      ? ok({ outcome: 'accepted', what })
      : conflict('nothing has changed', [`this node does not doubt the ${what} of the store`])
  },
  commands: [
    commandLine({
      words: ['store accept'],
      summary: 'Tell all processes and nodes that what they doubt about their store is right',
      notes: ['`postern status` and /health/ready say what is doubted. Exit code 1 if nothing is.'],
      arguments: [],
      // Named as what they accept.
      options: {
        clock: { type: 'boolean', help: 'Its clock, which has jumped: what has expired by it has expired' },
        contents: {
          type: 'boolean',
          help: 'Its contents, which are older than what this node has seen: tokens are issued again',
        },
      },
      examples: [
        {
          line: "postern store accept --contents --reason 'backup restored'",
          does: 'issue tokens again, after `postern revoke --before now`',
        },
        {
          line: "postern store accept --clock --reason 'the clock was wrong before'",
          does: 'go on by the time that the database has now',
        },
      ],
      input: ({ values }) => {
        const [what, second] = DOUBTED.filter((each) => values[each] === true)
        if (what === undefined || second !== undefined)
          throw new UsageError(
            `expected one of ${DOUBTED.map((each) => `--${each}`).join(', ')}, to say what is right`,
          )
        return { body: { what } }
      },
      text: ({ what }: { readonly what: Doubted }) => `the ${what} of the store is accepted\n`,
    }),
  ],
}
