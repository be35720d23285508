/** Writes YAML. Reading it is yaml.ts. */
import { Document, isCollection, isMap, isScalar, type Node, visit } from 'yaml'

const WIDTH = 116
/** Levels of lists and maps that are still read easily on one line. */
const FLAT = 2
const LONG_TEXT = 80
/** The steps to a section of the document: the document, its map, a pair of it. */
const SECTION = 3

const nodesOf = (node: Node): readonly unknown[] =>
  isMap(node) ? node.items.map(({ value }) => value) : isCollection(node) ? node.items : []

const isLong = (node: unknown): boolean =>
  isScalar(node) &&
  typeof node.value === 'string' &&
  (node.value.length > LONG_TEXT || node.value.includes('\n'))

/** Whether a list or map has few levels and short texts. */
const isFlat = (node: Node, levels: number): boolean =>
  levels > 0 && nodesOf(node).every((each) => (isCollection(each) ? isFlat(each, levels - 1) : !isLong(each)))

/** A value as YAML 1.2: what is small stands on one line (flow style), the rest on a line for each entry. */
export function writeYaml(value: unknown): string {
  const document = new Document(value, { version: '1.2', aliasDuplicateObjects: false })
  visit(document, {
    Collection: (_key, node, path) => {
      if (path.length > SECTION && isFlat(node, FLAT)) node.flow = true
    },
  })
  return document.toString({ lineWidth: WIDTH, flowCollectionPadding: true })
}
