# `. config/recipes/call.sh http://127.0.0.1:8080` makes `call BUSINESS PATH [options of curl]`, as Alice of the demo. It
# prints the answer and its status. `$ACME` and `$GLOBEX` are her headers for curl alone, `$API` is where the API begins.
header_for() {
  echo "Authorization: Bearer $(curl -s "$1/connect/token" -u acme-books:acme-books-secret \
    -d grant_type=password -d username=alice -d password=alice-password \
    -d "scope=fund.maintain target:b/$2" | sed 's/.*"access_token":"\([^"]*\)".*/\1/')"
}
ACME=$(header_for "$1" ACME)
GLOBEX=$(header_for "$1" GLOBEX)
API=$1/api/1.0

call() {
  if [ "$1" = ACME ]; then header=$ACME; else header=$GLOBEX; fi
  address=$API/b/$1/$2
  shift 2
  curl -sg -w ' %{http_code}\n' "$address" -H "$header" "$@"
}
