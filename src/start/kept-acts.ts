/** Keeps the records of what an operator does to the directory by the admin API. */
import { type AuditedChange, type Operator, recordGiving, recordTaking } from '../audit/audited-change.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { ChangeRecorder, DirectoryChange } from './directory-control.ts'

export interface KeptActsParts {
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
}

const namedChange = ({ username, ...act }: DirectoryChange): AuditedChange =>
  username === undefined ? act : { ...act, personal: { 'on.id': username } }

export const recorderOf = (operator: Operator, { audit, recorder }: KeptActsParts): ChangeRecorder => ({
  async keep(act, gives, work) {
    const record = gives ? recordGiving : recordTaking
    const result = await record(audit, operator, namedChange(act), work)
    const { event, on } = act
    recorder.note('info', 'directory_changed', { change: event, on, ...operator })
    return result
  },
})
