// The signatures of 49 functions and the hashes of their texts, as they are on every machine and
// with every compiler. A line that changes is a change of the wire form.
#pragma once

#include <string_view>

namespace ucx::calls {

struct golden_signature {
  std::string_view text;
  std::string_view hash;  ///< As xxh128sum prints it.
};

inline constexpr golden_signature golden_signatures[]{
    {"()->nil", "062c918506152d4da6780554b60e9b05"},
    {"(i32,i32)->i32", "32c541615c5f4d40dbf8135d4d7030cd"},
    {"(bool)->bool", "f3edd0d3cfc1d660d99996952884478a"},
    {"(u8)->i8", "5b05eaf08ab9617fdc54518b6efb42ea"},
    {"(u16)->i16", "f5a224353157db2a1b91059460123e5d"},
    {"(u32)->i32", "ef6f3ef02b55e0572c7d62f24a0a1294"},
    {"(u64)->i64", "698280a2cfa92d011a90a2a7d17674c3"},
    {"(f64)->f32", "4c49eae6bf376971521301da8980a1b3"},
    {"(text)->text", "9f16e75e341280b02cba334c5e6f69d7"},
    {"(text,bool)->text", "c330f606e7cb38ab3c7ddbe45718df4c"},
    {"(bytes)->bytes", "e34482e8b0063b1f6f472ab036749fc6"},
    {"(i64,u64)->nil", "afce8dd9dd084ed667a9c6b68fb0376c"},
    {"(i64,bool)->nil", "03be4cd4c8a9f0b724329a000b1f5174"},
    {"(i8,u8)->nil", "eb89f4d49e0e419e4dca507f3a1f1def"},
    {"(i16,u16,u32)->nil", "7430a183fa191f6927d81db4cfa4cc3e"},
    {"(i32)->u8", "f0549aa4c8044263caa6312264a166bf"},
    {"()->list<f64>", "033c91a223d38665e93c0555fb817406"},
    {"(list<bool>)->list<list<text>>", "ffdcf75102031512fc4b1e9d95f5be2b"},
    {"()->array<u8,16>", "a3c662f521cf36035bb187cba0e9c9bb"},
    {"()->array<array<f32,3>,2>", "b497346b818e42c652e565a5f039ac4e"},
    {"(optional<text>)->optional<i32>", "bb5f5f2497f92aff7b868865bc84b6b9"},
    {"()->optional<list<optional<i32>>>", "dcbb85a4983a713f91dce1f50bffef3e"},
    {"()->tuple<i32,text>", "62dd3698dab3e037f2d3ae539d94cc7d"},
    {"()->tuple<i32>", "00b57802493f241d8e3e98d05dd8e57f"},
    {"()->tuple<bool,u8,f32,text,bytes>", "f24542e1a1b411145072ae817358624a"},
    {"()->map<text,i32>", "7b1d7817b054e3f2bb74ca98f9dffa72"},
    {"(map<bool,bool>)->map<u64,text>", "fb346614591aea4d8aed88d57e94767d"},
    {"()->map<u8,list<point{x:f64,y:f64}>>", "bf6cff74e69f56e9687d3ec84f0420ca"},
    {"(point{x:f64,y:f64})->point{x:f64,y:f64}", "efa286c4959e770a7e185f0b730e4537"},
    {"(shape{name:text,corners:list<point{x:f64,y:f64}>,fill:optional<u8>})->shape{name:text,"
     "corners:list<point{x:f64,y:f64}>,fill:optional<u8>}",
     "efdf356ed9e0395355aef174a54d383a"},
    {"(map<text,shape{name:text,corners:list<point{x:f64,y:f64}>,fill:optional<u8>}>)->list<shape{"
     "name:text,corners:list<point{x:f64,y:f64}>,fill:optional<u8>}>",
     "156020ed9959cd9299c6d114871a718a"},
    {"(list<f64>,point{x:f64,y:f64})->bytes", "b414377e64e868cb6ff9dffba52e7f53"},
    {"(text,i32)->optional<shape{name:text,corners:list<point{x:f64,y:f64}>,fill:optional<u8>}>",
     "4c36ee71316a470815ac7e57148bcafe"},
    {"()->tuple<point{x:f64,y:f64},tuple<point{x:f64,y:f64},point{x:f64,y:f64}>>",
     "070bb650042aa7e69731569ed45ca24c"},
    {"(tuple<tuple<i32,i32>,optional<tuple<i32,i32>>>)->nil", "80ac7e5dd5d8d4fa4041e742b0ab3d68"},
    {"()->map<text,map<text,map<text,f64>>>", "99b11c47800c4304154cd2d8ef2244a9"},
    {"(list<f32>,list<f32>)->f64", "01a91dff7bba1975ad1454fd9fa8bc79"},
    {"(i32,i32,i32,i32,i32,i32,i32,i32)->text", "3beba85f7fe6dd93185ab58c1c031208"},
    {"(list<text>)->list<tuple<text,bytes>>", "6ef5a920e405155c83e155c116260013"},
    {"(text,optional<f64>,array<i64,4>)->nil", "c4d9469bcc4f432aab1c460f156698e5"},
    {"(window:r)->nil", "3e4958a3b00422cde3f73a80bc63df14"},
    {"(window:w,u64)->u64", "84e25b503827c52dbacb7475bcebda58"},
    {"(list<f64>,point{x:f64,y:f64},window:r)->bytes", "f2f26e70631172020402972a118e0edb"},
    {"(window:rw,window:r,window:w)->nil", "e017e840d15212e00bbb0e39f0830885"},
    {"(buffer)->buffer", "d2a3e3be5f2abf19eb6e4cfc11a61b2a"},
    {"(buffer,u64)->bool", "a05e5c1a93015671939eb8b01e306f8f"},
    {"(list<buffer>,optional<buffer>)->tuple<i32,buffer>", "45b71d0e29bfb5610c5820ad389defc7"},
    {"(tensor)->f64", "3cdaaaed48cc90f4e8a82bfff3850fcb"},
    {"(tensor,map<text,tensor>)->tensor", "65b8183a4eab22a4df89bdd3852313f6"},
};

}  // namespace ucx::calls
