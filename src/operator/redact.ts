/** The admin API's route that erases personal values in the audit trail (C12.2.3). */
import { type Operation, count, members, ok, problemsSchema, refuse, text, WHO } from './operation.ts'

const body = members({ subject: text('The `sub` whose values are erased.'), ...WHO }, ['subject', 'reason'])

export const REDACT_ROUTE: Operation = {
  method: 'POST',
  path: '/audit/redact',
  operationId: 'redactSubject',
  needs: 'administer',
  summary: 'Erase the personal values of all records whose actor or object is a user',
  body,
  answers: {
    200: [
      'Erased',
      members({ values: count('Values that were erased.'), files: count('Files that held them.') }),
    ],
    409: ['This service does not sign a trail', problemsSchema],
  },
  handle: async (control, request) => {
    const { subject } = request.body as { readonly subject: string }
    const redacted = await control.redact(subject, request.operator)
    return redacted === undefined
      ? refuse('nothing was erased', ['this service keeps no audit trail, or another one still signs it'])
      : ok(redacted)
  },
}
