/** The editors of everything in the directory, as one kind of thing (C11.5.1). */
import type { Page } from '../contracts/store.ts'
import { ClientEditor } from './client-editor.ts'
import type { ChangesOf, FoundRecord, ListedPage, PlannedAdd, PlannedChange, PlannedStep } from './editing.ts'
import type { NounName } from './nouns.ts'
import { BusinessEditor, FundEditor, RoleEditor } from './place-editors.ts'
import { type UserEditingParts, UserEditor } from './user-editor.ts'

/**
 * What every editor can do. What changes something is planned first: what is refused, is refused then, before anybody records
 * that it was begun. All methods reject with DirectoryRefusal, and with Fault `identity_unavailable`.
 */
export interface NounEditor {
  show(key: string): Promise<FoundRecord<object>>
  list(page: Page): Promise<ListedPage<FoundRecord<object>>>
  planAdd(written: object): Promise<PlannedAdd>
  plan(key: string, changes: ChangesOf): Promise<PlannedChange>
  planSwitch(key: string, disabled: boolean): Promise<PlannedChange>
  planRemoval(key: string): Promise<PlannedStep<true>>
}

export interface Editors extends Readonly<Record<NounName, NounEditor>> {
  readonly client: ClientEditor
  readonly user: UserEditor
}

export const openEditors = (parts: UserEditingParts): Editors => ({
  client: new ClientEditor(parts),
  user: new UserEditor(parts),
  business: new BusinessEditor(parts),
  fund: new FundEditor(parts),
  role: new RoleEditor(parts),
})
