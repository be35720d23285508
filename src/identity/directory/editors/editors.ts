/** Everything in the directory that operators manage (C11.5.1): its kinds of records, and an editor of each. */
import { type ClientForm, type ClientRecord, CORE_FORM, type UserRecord } from '../records/schema.ts'
import { clientRecords } from './client.ts'
import type { EditingParts } from './editing.ts'
import { BUSINESS_RECORDS, FUND_RECORDS, ROLE_RECORDS } from './places.ts'
import { RecordEditor } from './record-editor.ts'
import type { NounName, RecordKinds } from './record-kind.ts'
import { USER_RECORDS } from './user.ts'

export const RECORD_KINDS: RecordKinds = {
  client: clientRecords(CORE_FORM),
  user: USER_RECORDS,
  business: BUSINESS_RECORDS,
  fund: FUND_RECORDS,
  role: ROLE_RECORDS,
}

/** The same, with what extensions add to clients. */
export const recordKindsWith = (form: ClientForm): RecordKinds => ({
  ...RECORD_KINDS,
  client: clientRecords(form),
})

export interface Editors extends Readonly<Record<NounName, RecordEditor>> {
  readonly client: RecordEditor<ClientRecord>
  readonly user: RecordEditor<UserRecord>
}

export const openEditors = (parts: EditingParts) =>
  ({
    client: new RecordEditor(clientRecords(parts.configured.clientForm), parts),
    user: new RecordEditor(USER_RECORDS, parts),
    business: new RecordEditor(BUSINESS_RECORDS, parts),
    fund: new RecordEditor(FUND_RECORDS, parts),
    role: new RecordEditor(ROLE_RECORDS, parts),
  }) satisfies Editors
