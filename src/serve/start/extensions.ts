/** The extensions, a line each. To delete one: its line here, `src/extensions/NAME` and `test/extensions/NAME`. */
export type { Extension } from '../../operate/hooks/extension.ts'
export { extension as developers } from '../../extensions/developers/extension.ts'
export { extension as fromOpenapi } from '../../extensions/from-openapi/extension.ts'
export { extension as introspection } from '../../extensions/introspection/extension.ts'
export { extension as logout } from '../../extensions/logout/extension.ts'
export { extension as modules } from '../../extensions/modules/extension.ts'
export { extension as people } from '../../extensions/people/extension.ts'
export { extension as websocket } from '../../extensions/websocket/extension.ts'
