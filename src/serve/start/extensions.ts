/** The extensions that there are: without its line, its folder and `test/extensions/NAME` one is not there at all. */
export type { Extension } from '../../operate/hooks/extension.ts'
export { extension as fromOpenapi } from '../../extensions/from-openapi/extension.ts'
