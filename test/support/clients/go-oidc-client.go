package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"

	"github.com/coreos/go-oidc"
	"golang.org/x/oauth2"
)

var ISSUER, ORIGIN = os.Getenv("ISSUER"), os.Getenv("ORIGIN")

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx := context.Background()

	provider := must(oidc.NewProvider(ctx, ISSUER))
	config := oauth2.Config{
		ClientID:     "ledgerline",
		ClientSecret: "ledgerline-secret",
		Endpoint:     provider.Endpoint(),
		RedirectURL:  ORIGIN + "/callback",
		Scopes:       []string{oidc.ScopeOpenID, "profile", "fund.read", "target:b"},
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})

	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, config.AuthCodeURL("a random text"), http.StatusFound)
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		token := must(config.Exchange(ctx, r.FormValue("code")))
		var claims, info struct {
			Name string `json:"name"`
		}
		err := must(verifier.Verify(ctx, token.Extra("id_token").(string))).Claims(&claims)
		must(claims, err)
		err = must(provider.UserInfo(ctx, oauth2.StaticTokenSource(token))).Claims(&info)
		must(info, err)
		answer := must(config.Client(ctx, token).Get(os.Getenv("FUNDS")))
		funds := must(io.ReadAll(answer.Body))
		json.NewEncoder(w).Encode(map[string]any{"name": info.Name, "funds": json.RawMessage(funds)})
	})
	must(0, http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
