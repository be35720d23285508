/** The operations on records of the directory, with what extensions add to clients. */
import { recordKindsWith } from '../identity/directory/editors/editors.ts'
import type { NounName } from '../identity/directory/editors/record-kind.ts'
import { clientFormOf } from '../identity/directory/records/schema.ts'
import type { AdminOperation } from '../operate/operation/operation.ts'
import { recordOperations } from '../operate/records/records.ts'
import { EXTENSIONS } from './init/table.ts'

const KINDS = recordKindsWith(clientFormOf(EXTENSIONS.flatMap(({ settings }) => settings ?? [])))

export const operationsOn = (noun: NounName): readonly AdminOperation[] => recordOperations([KINDS[noun]])
