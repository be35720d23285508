/** The rule of the linter that forbids calls which only compute, where nobody uses their result. */

/** Functions that only compute, by name and as members of what is named. Some objects have others too, which act. */
const PURE = [
  '[callee.name=/^(?:decodeURI|decodeURIComponent|encodeURI|encodeURIComponent|escape|unescape|atob|btoa|structuredClone)$/]',
  '[callee.name=/^(?:String|Number|BigInt|Boolean|Symbol|Object|Array|RegExp|Date|parseInt|parseFloat|isNaN|isFinite)$/]',
  '[callee.object.name=/^(?:JSON|Math|Intl|String|Number|BigInt|Symbol|Array|RegExp|Date|URL|Buffer)$/]',
  '[callee.object.name=/^(?:Object|Reflect)$/]:not([callee.property.name=/^(?:apply|assign|construct|define.*|delete.*|freeze|prevent.*|seal|set.*)$/])',
]
/** Where nobody gets the result of an expression. */
const UNUSED = [
  'ExpressionStatement >',
  'ExpressionStatement > LogicalExpression > .right',
  'ExpressionStatement > ConditionalExpression > :not(.test)',
  'UnaryExpression[operator="void"] >',
  'SequenceExpression > :not(:last-child)',
]
const unusedCalls = UNUSED.flatMap((place) => {
  const at = (kind: string): string => (place.endsWith('>') ? `${place} ${kind}` : place + kind)
  const kinds = [...PURE.map((names) => `:matches(CallExpression)${names}`), ':matches(NewExpression)']
  return kinds.map(at)
})

/**
 * A bundler takes such a call for one that does nothing, and leaves it out, although it may throw. The options of a rule of
 * the linter.
 */
export const NO_UNUSED_RESULTS: readonly ['error', { readonly selector: string; readonly message: string }] =
  [
    'error',
    {
      selector: `:matches(${unusedCalls.join(', ')})`,
      message:
        'Use the result: what builds the bundle may leave out a call that only computes, and its `catch`.',
    },
  ]
