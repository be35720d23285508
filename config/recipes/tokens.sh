# Tokens of Alice for two businesses of the demo, as headers: `. config/recipes/tokens.sh http://127.0.0.1:8080`
token_for() {
  echo "Authorization: Bearer $(curl -s "$1/connect/token" -u acme-books:acme-books-secret \
    -d grant_type=password -d username=alice -d password=alice-password \
    -d "scope=fund.maintain target:b/$2" | sed 's/.*"access_token":"\([^"]*\)".*/\1/')"
}
ACME=$(token_for "$1" ACME)
GLOBEX=$(token_for "$1" GLOBEX)
API=$1/api/1.0
