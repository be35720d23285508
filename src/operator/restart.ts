/** The worker processes are replaced, one after the other. */
import { commandLine, count, members, ok, type Operation, problemsSchema, refuse, WHO } from './operation.ts'
import { countOf } from './text.ts'

const RESTART: Operation = {
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
  handle: async (control, { operator }) => {
    const outcome = await control.restart(operator)
    return outcome.outcome === 'refused' ? refuse('not restarted', outcome.problems) : ok(outcome)
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

export const RESTART_OPERATIONS: readonly Operation[] = [RESTART]
